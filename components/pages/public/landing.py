"""The landing page: what the product does, for whom, and how to start."""

from collections.abc import Callable

import reflex as rx

from components.layout.frame import visitor_frame
from components.layout.navigation import LOGIN_PATH
from components.ui.badge import badge
from components.ui.button import link_button
from locales import _, listed
from settings import settings
from state.public.chains import evm_titles

CARDS = (
    (
        "shield-check",
        _("NFT verification"),
        _("Members verify a wallet through their marketplace profile. Nobody ever connects one."),
    ),
    (
        "badge-check",
        _("Automatic roles"),
        _("Members get a role when they hold the NFT and lose it when they sell. A daily check keeps roles correct."),
    ),
    (
        "activity",
        _("Real-time updates"),
        _("Buys, sales and transfers are noticed on chain and acted on while people are still talking about them."),
    ),
    (
        "list-checks",
        _("Custom rules"),
        _("Combine several conditions into one rule, and write as many rules as you like. All of it is free."),
    ),
    (
        "chart-line",
        _("Analytics"),
        _("See who verified, which rules give which roles, and what changed since yesterday."),
    ),
    (
        "wallet-cards",
        _("Multiple wallets"),
        _("Each member may verify as many wallets as they own. Their balances add up."),
    ),
)
STEPS = (
    (_("Log in with Discord"), _("We ask who you are and which servers you are in. Nothing else.")),
    (_("Add your server"), _("Pick it from the list of servers you administer.")),
    (_("Invite the bot"), _("Discord shows you exactly what it may do before you agree.")),
    (_("Configure NFT rules"), _("Choose a collection, a number and a role. Members do the rest.")),
)


_COLLECTION = "Tide Pools"
"""The collection of the example."""


def landing() -> rx.Component:
    """Return the visitors' page at / and at every unknown path."""
    return visitor_frame(_redirecting(), _hero(), _features(), _steps(), _closing())


def _redirecting() -> rx.Component:
    """Return the text shown when another tab signed in, until the document reloads as the dashboard."""
    return rx.el.p(_("Redirecting to dashboard..."), class_name="when-signed-in", role="status")


def _hero() -> rx.Component:
    return rx.el.section(
        rx.el.div(
            rx.el.div(
                rx.el.p(_("Token-gated roles for Discord"), class_name="text-sm font-semibold text-accent"),
                rx.el.h1(
                    _("Roles that hold as long as the NFT does"),
                    class_name="mt-3 text-4xl font-bold sm:text-5xl lg:text-6xl",
                ),
                rx.el.p(
                    _(
                        "{product} gives your community's roles to the people who really own the collection, and "
                        "takes them back when they sell. Without ever connecting a wallet."
                    ).format(product=settings().product_name),
                    class_name="muted mt-5 max-w-xl text-lg",
                ),
                rx.el.div(
                    link_button(
                        _("Login with Discord"), LOGIN_PATH, kind="primary", leaves_app=True, class_name="btn-lg"
                    ),
                    link_button(_("See how it works"), "/#docs", kind="quiet", class_name="btn-lg max-[26rem]:-ms-5"),
                    class_name="mt-8 flex flex-wrap gap-3",
                ),
                class_name="min-w-0",
            ),
            _specimen(),
            class_name=(
                "mx-auto grid max-w-6xl grid-cols-1 items-center gap-12 px-4 py-16 sm:px-6 sm:py-24 "
                "lg:grid-cols-[1.15fr_1fr]"
            ),
        ),
        class_name="tide",
    )


def _specimen() -> rx.Component:
    """Return a sample rule and its effect on three people, drawn with the product's own parts."""
    people = (
        ("carol", _("holds 3"), _("Collector"), True),
        ("dave", _("holds 1"), _("Collector"), True),
        ("erin", _("sold hers today"), _("role taken back"), False),
    )
    return rx.el.div(
        rx.el.div(
            rx.el.div(
                rx.el.p(_COLLECTION, class_name="display text-lg font-semibold"),
                rx.el.p(_("At least 1 token on Base"), class_name="muted text-sm"),
            ),
            badge(_("Active"), "good"),
            class_name="flex items-start justify-between gap-4 border-b hairline pb-4",
        ),
        *[
            rx.el.div(
                rx.el.span(
                    name[0].upper(),
                    class_name="display grid size-9 place-items-center rounded-full bg-base-200 font-semibold",
                ),
                rx.el.div(
                    rx.el.p(name, class_name="font-medium leading-tight"),
                    rx.el.p(holding, class_name="muted text-sm leading-tight"),
                    class_name="flex-1",
                ),
                badge(outcome, "info") if kept else badge(outcome),
                class_name="flex flex-wrap items-center gap-3 pt-4",
            )
            for name, holding, outcome, kept in people
        ],
        class_name="surface p-6 lg:rotate-1",
        aria_hidden="true",
    )


def _features() -> rx.Component:
    return rx.el.section(
        rx.el.h2(_("What it does for your server"), class_name="text-2xl font-bold sm:text-3xl"),
        rx.el.p(
            # The specification lists seven chains here, and names Solana as the eighth of the rule form.
            _("{chains}. Rules can use Solana collections too.").format(chains=listed(evm_titles())),
            class_name="muted mt-2",
        ),
        rx.el.ul(
            *[claim(rx.el.h3, icon, title, text) for icon, title, text in CARDS],
            class_name="mt-8 grid grid-cols-1 gap-5 sm:grid-cols-2 lg:grid-cols-3",
        ),
        id="features",
        class_name="mx-auto max-w-6xl scroll-mt-8 px-4 py-14 sm:px-6",
    )


def claim(heading: Callable[..., rx.Component], icon: str, title: str, text: str) -> rx.Component:
    """Return one thing that the product does, for a list of them; `heading` makes its title."""
    return rx.el.li(
        rx.el.span(rx.icon(icon, size=22, aria_hidden="true"), class_name="text-primary"),
        heading(title, class_name="mt-3 text-lg font-semibold"),
        rx.el.p(text, class_name="muted mt-1"),
        class_name="surface p-6",
    )


def _steps() -> rx.Component:
    return rx.el.section(
        rx.el.h2(_("Set up in four steps"), class_name="text-2xl font-bold sm:text-3xl"),
        rx.el.ol(
            *[
                rx.el.li(
                    rx.el.span(str(number), class_name="display text-4xl font-bold text-accent", aria_hidden="true"),
                    rx.el.h3(title, class_name="mt-2 text-lg font-semibold"),
                    rx.el.p(text, class_name="muted mt-1"),
                    class_name="border-t-2 border-primary pt-4",
                )
                for number, (title, text) in enumerate(STEPS, start=1)
            ],
            class_name="mt-8 grid grid-cols-1 gap-8 sm:grid-cols-2 lg:grid-cols-4",
        ),
        id="docs",
        class_name="mx-auto max-w-6xl scroll-mt-8 px-4 py-14 sm:px-6",
    )


def _closing() -> rx.Component:
    return rx.el.section(
        rx.el.div(
            rx.el.h2(_("Your first rule takes five minutes"), class_name="text-2xl font-bold sm:text-3xl"),
            rx.el.p(_("Unlimited rules, unlimited members, free of charge."), class_name="mt-2 opacity-85"),
            rx.el.a(
                _("Get Started"),
                href=LOGIN_PATH,
                reload_document=True,
                class_name="btn btn-lg mt-6 border-0 bg-base-100 text-base-content hover:bg-base-200",
            ),
            class_name="depth rounded-box px-6 py-12 text-center sm:px-12",
        ),
        class_name="mx-auto max-w-6xl px-4 pb-20 pt-6 sm:px-6",
    )
