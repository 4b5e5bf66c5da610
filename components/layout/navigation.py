"""The bar at the top of every page, for visitors and for members."""

import reflex as rx

from components.ui.brand import wordmark
from components.ui.button import button, link_button
from settings import settings
from state.session import STORAGE_KEY, SessionState

LOGIN_PATH = "/api/auth/discord"
VISITOR_LINKS = (("Features", "/#features"), ("How it works", "/#docs"))
MEMBER_LINKS = (("Dashboard", "/dashboard"), ("Add a server", "/invite"), ("Verify Wallets", "/wallet-verification"))

# In the page's own code, not sent by the server: a strict content security policy allows nothing that is evaluated.
_LOG_OUT = (
    f"fetch('/api/auth/logout',{{method:'POST'}}).finally(()=>"
    f"{{localStorage.removeItem('{STORAGE_KEY}');window.location.assign('/')}})"
)


def log_out() -> rx.event.EventSpec:
    """Ends the session, removes the stored id and leads to the landing page."""
    return rx.run_script(_LOG_OUT)


def visitor_bar() -> rx.Component:
    """Navigation of the public pages."""
    return _bar(
        VISITOR_LINKS,
        link_button("Login with Discord", LOGIN_PATH, kind="primary", leaves_app=True, class_name="btn-sm sm:btn-md"),
        home="/",
    )


def member_bar() -> rx.Component:
    """Navigation of the signed-in screens."""
    return _bar(
        MEMBER_LINKS,
        rx.el.a(
            rx.icon("user-round", size=18, aria_hidden="true"),
            rx.el.span(SessionState.name, class_name="max-w-32 truncate"),
            href="/account",
            aria_label=f"Account of {SessionState.name}",
            class_name="btn btn-ghost btn-sm",
        ),
        button("Logout", kind="quiet", icon="log-out", class_name="btn-sm", on_click=log_out()),
        home="/dashboard",
    )


def _bar(links: tuple[tuple[str, str], ...], *actions: rx.Component, home: str) -> rx.Component:
    return rx.el.header(
        rx.el.div(
            wordmark(home),
            rx.el.nav(
                *[_link(label, href) for label, href in links],
                class_name="hidden items-center gap-1 md:flex",
                aria_label="Main",
            ),
            rx.el.div(*actions, class_name="flex items-center gap-1"),
            class_name="mx-auto flex h-16 max-w-6xl items-center justify-between gap-4 px-4 sm:px-6",
        ),
        rx.el.nav(
            *[_link(label, href) for label, href in links],
            class_name="flex gap-1 overflow-x-auto px-3 pb-2 md:hidden",
            aria_label="Main, small",
        ),
        class_name="border-b hairline bg-base-100",
    )


def _link(label: str, href: str) -> rx.Component:
    return rx.el.a(
        label, href=href, class_name="whitespace-nowrap rounded-field px-3 py-2 text-sm font-medium hover:bg-base-200"
    )


def footer() -> rx.Component:
    """The brand line below every page."""
    return rx.el.footer(
        rx.el.div(
            wordmark("/"),
            rx.el.p(
                f"© {settings().brand_year} {settings().product_name}, a brand of {settings().brand}.",
                class_name="muted text-sm",
            ),
            class_name=(
                "mx-auto flex max-w-6xl flex-col items-start justify-between gap-4 px-4 py-8 sm:flex-row "
                "sm:items-center sm:px-6"
            ),
        ),
        class_name="mt-auto border-t hairline",
    )
