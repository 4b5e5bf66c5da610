"""The features page, longer than the landing page."""

import reflex as rx

from components.layout.navigation import LOGIN_PATH
from components.pages.public.landing import STEPS
from components.ui.button import link_button
from settings import settings
from state.core.session import MEMBER, SessionState
from state.help.chains import evm_titles

_CLAIMS = (
    ("shield-check", "Verification by marketplace profile", "Members put a personal code into the bio of their "
     "marketplace profile. Only the owner of a profile can change its bio, so the code verifies the wallet."),
    ("unplug", "No wallet is ever connected", "Wallets are verified without connecting one. A code in your profile is "
     "enough. The other way is a transaction to yourself: you sign it in your own wallet app and pay the chain's fee."),
    ("badge-check", "Automatic role assignment", "Members who meet a rule get its role, without asking a moderator "
     "or waiting for one."),
    ("badge-minus", "Roles are taken when the NFT is sold", "Holdings are checked daily. Members who no longer "
     "meet any rule for a role lose it. A node that does not answer costs nobody a role."),
    ("activity", "Real-time updates", "Roles follow when members buy, sell or transfer, so the member list stays "
     "close to what the chain says."),
    ("list-checks", "Custom rules", "Combine several conditions for one role: how many tokens, which trait, "
     "which token ids, on which chain."),
    ("infinity", "Unlimited rules, free use", "Write as many rules as your server needs, for as many members as it "
     "has. All of it is free."),
    ("chart-line", "Analytics", "The dashboard counts verifications, active rules and connected servers, and "
     "draws what happened day by day."),
    ("wallet-cards", "Multiple wallets", "A member may verify several wallets. Their balances add up."),
)  # fmt: skip


_ON_GREEN = "border-0 bg-base-100 text-base-content hover:bg-base-200"
_NUMBERS = ("Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


def features() -> rx.Component:
    """Return the page /features."""
    return rx.el.div(
        rx.el.h1("Features", class_name="text-4xl font-bold sm:text-5xl"),
        rx.el.p(
            f"{settings().product_name} ties Discord roles to NFTs that people really own, and keeps the two in step.",
            class_name="muted mt-4 max-w-3xl text-lg",
        ),
        rx.el.ul(
            *[_claim(icon, title, text) for icon, title, text in _CLAIMS],
            class_name="mt-10 grid grid-cols-1 gap-5 sm:grid-cols-2 lg:grid-cols-3",
        ),
        _chains(),
        _setup(),
        class_name="mx-auto max-w-6xl px-4 py-12 sm:px-6 sm:py-16",
    )


def _claim(icon: str, title: str, text: str) -> rx.Component:
    return rx.el.li(
        rx.el.span(rx.icon(icon, size=22, aria_hidden="true"), class_name="text-primary"),
        rx.el.h2(title, class_name="mt-3 text-lg font-semibold"),
        rx.el.p(text, class_name="muted mt-1"),
        class_name="surface p-6",
    )


def _chains() -> rx.Component:
    count = len(evm_titles())
    return rx.el.section(
        rx.el.h2(f"{dict(enumerate(_NUMBERS, start=7)).get(count, count)} chains", class_name="text-2xl font-bold"),
        rx.el.ul(
            *[
                rx.el.li(chain, class_name="rounded-full border hairline bg-base-100 px-4 py-1.5 font-medium")
                for chain in evm_titles()
            ],
            class_name="mt-4 flex flex-wrap gap-2",
        ),
        class_name="mt-14",
    )


def _setup() -> rx.Component:
    return rx.el.section(
        rx.el.div(
            rx.el.h2("Quick setup", class_name="text-2xl font-bold"),
            rx.el.ol(
                *[
                    rx.el.li(
                        rx.el.h3(f"{number}. {title}", class_name="font-semibold"),
                        rx.el.p(text, class_name="mt-1 opacity-85"),
                    )
                    for number, (title, text) in enumerate(STEPS, start=1)
                ],
                class_name="mt-6 grid grid-cols-1 gap-6 sm:grid-cols-2 lg:grid-cols-4",
            ),
            rx.el.div(
                rx.cond(
                    SessionState.audience == MEMBER,
                    link_button("Get Started", "/dashboard", class_name=_ON_GREEN),
                    link_button("Get Started", LOGIN_PATH, leaves_app=True, class_name=_ON_GREEN),
                ),
                class_name="mt-8",
            ),
            class_name="depth rounded-box p-6 sm:p-10",
        ),
        class_name="mt-14",
    )
