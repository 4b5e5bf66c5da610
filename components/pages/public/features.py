"""The features page, longer than the landing page; it spells out small numbers, such as that of the chains."""

import reflex as rx

from components.layout.frame import of_audience
from components.layout.navigation import LOGIN_PATH
from components.pages.public.landing import STEPS, claim
from components.ui.button import link_button
from locales import _
from settings import settings
from state.public.chains import evm_titles

_CLAIMS = (
    (
        "shield-check",
        _("Verification by marketplace profile"),
        _(
            "Members put a personal code into the bio of their "
            "marketplace profile. Only the owner of a profile can change its bio, so the code verifies the wallet."
        ),
    ),
    (
        "unplug",
        _("No wallet is ever connected"),
        _(
            "Wallets are verified without connecting one. A code in your profile is enough. The other way is a "
            "transaction to yourself: you sign it in your own wallet app and pay the chain's fee."
        ),
    ),
    (
        "badge-check",
        _("Automatic role assignment"),
        _("Members who meet a rule get its role, without asking a moderator or waiting for one."),
    ),
    (
        "badge-minus",
        _("Roles are taken when the NFT is sold"),
        _(
            "Holdings are checked daily. Members who no longer "
            "meet any rule for a role lose it. A node that does not answer costs nobody a role."
        ),
    ),
    (
        "activity",
        _("Real-time updates"),
        _("Roles follow when members buy, sell or transfer, so the member list stays close to what the chain says."),
    ),
    (
        "list-checks",
        _("Custom rules"),
        _("Combine several conditions for one role: how many tokens, which trait, which token ids, on which chain."),
    ),
    (
        "infinity",
        _("Unlimited rules, free use"),
        _("Write as many rules as your server needs, for as many members as it has. All of it is free."),
    ),
    (
        "chart-line",
        _("Analytics"),
        _(
            "The dashboard counts verifications, active rules and connected servers, and "
            "draws what happened day by day."
        ),
    ),
    ("wallet-cards", _("Multiple wallets"), _("A member may verify several wallets. Their balances add up.")),
)


_ON_GREEN = "border-0 bg-base-100 text-base-content hover:bg-base-200"
_NUMBERS = (_("Seven"), _("Eight"), _("Nine"), _("Ten"), _("Eleven"), _("Twelve"))


def features() -> rx.Component:
    """Return the page /features."""
    return rx.el.div(
        rx.el.h1(_("Features"), class_name="text-4xl font-bold sm:text-5xl"),
        rx.el.p(
            _("{product} ties Discord roles to NFTs that people really own, and keeps the two in step.").format(
                product=settings().product_name
            ),
            class_name="muted mt-4 max-w-3xl text-lg",
        ),
        rx.el.ul(
            *[claim(rx.el.h2, icon, title, text) for icon, title, text in _CLAIMS],
            class_name="mt-10 grid grid-cols-1 gap-5 sm:grid-cols-2 lg:grid-cols-3",
        ),
        _chains(),
        _setup(),
        class_name="mx-auto max-w-6xl px-4 py-12 sm:px-6 sm:py-16",
    )


def _chains() -> rx.Component:
    count = len(evm_titles())
    return rx.el.section(
        rx.el.h2(
            _("{count} chains").format(count=dict(enumerate(_NUMBERS, start=7)).get(count, str(count))),
            class_name="text-2xl font-bold",
        ),
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
            rx.el.h2(_("Quick setup"), class_name="text-2xl font-bold"),
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
                of_audience(
                    lambda: link_button(_("Get Started"), LOGIN_PATH, leaves_app=True, class_name=_ON_GREEN),
                    lambda: link_button(_("Get Started"), "/dashboard", class_name=_ON_GREEN),
                ),
                class_name="mt-8",
            ),
            class_name="depth rounded-box p-6 sm:p-10",
        ),
        class_name="mt-14",
    )
