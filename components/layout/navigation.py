"""The bar at the top of every page, for visitors and for members."""

import reflex as rx

from components.ui.brand import wordmark
from components.ui.button import button, link_button
from components.ui.effects.texts import filled
from locales import _
from settings import settings
from state.core.session import MEMBER, STORAGE_KEY, SessionState
from state.dashboard.invite import NavigationInviteState

LOGIN_PATH, LOGOUT_PATH = "/api/auth/discord", "/api/auth/logout"
CONNECT_PATH = "/api/auth/discord/connect"
SUPPORT_PATH = "/discord"
"""Leads to the support chat (app/http/html_pages.py)."""
DOCS = (_("Docs"), "/#docs")
MEMBERS_DOCS = (_("Docs"), "/help-center#docs")
"""Members have no landing page; the help center has the same guides."""
SUPPORT_LINKS = (("Discord", SUPPORT_PATH),) if settings().support_invite else ()
VISITOR_LINKS = (
    (_("Features"), "/features"),
    DOCS,
    (_("Help Center"), "/help-center"),
    *SUPPORT_LINKS,
    (_("Contact"), "/contact"),
)
MEMBER_LINKS = (
    (_("Dashboard"), "/dashboard"),
    (_("Add a server"), "/invite"),
    (_("Verify Wallets"), "/wallet-verification"),
    (_("Help Center"), "/help-center"),
)
ALSO = {"/dashboard": ("/",), "/wallet-verification": ("/verification",), "/invite": ("/server-setup",)}
"""Further addresses of the same screen, on which its link is marked too."""
_IN_BAR = "lg:whitespace-nowrap rounded-field px-3 py-2 text-sm font-medium hover:bg-base-200"
_MARKED = "aria-[current=page]:bg-base-200 aria-[current=page]:text-primary aria-[current=page]:font-semibold"


class _NavLink(rx.Component):
    """A link that marks itself as the current page; the browser decides, so it is right before the socket connects."""

    library = "$/public/screens/nav_link.js"
    tag = "NavLink"

    to: rx.Var[str]
    also: rx.Var[list[str]]


def _gone(call: str, method: str) -> rx.event.EventSpec:
    """Call `call`, remove the stored session id and go to the landing page.

    A form with unsaved changes may ask first (assets/screens/leave_question.js). This runs in the page's own code,
    because the content security policy forbids scripts evaluated from the server.
    """
    return rx.run_script(
        "(go=>window.dispatchEvent(new CustomEvent('leaves',{cancelable:true,detail:go}))&&go())"
        f"(()=>fetch('{call}',{{method:'{method}'}}).finally(()=>"
        f"{{localStorage.removeItem('{STORAGE_KEY}');window.location.assign('/')}}))"
    )


def log_out() -> rx.event.EventSpec:
    """Log this browser out."""
    return _gone(LOGOUT_PATH, "POST")


def leave_everywhere() -> rx.event.EventSpec:
    """Log the person out of every browser, this one included."""
    return _gone("/api/me/sessions", "DELETE")


def forget_session() -> rx.event.EventSpec:
    """Remove the cookie and the stored id of a session that the server has ended; the screen stays."""
    return rx.run_script(f"(localStorage.removeItem('{STORAGE_KEY}'),fetch('{LOGOUT_PATH}',{{method:'POST'}}))")


def visitor_bar() -> rx.Component:
    """Return the navigation of the public pages."""
    return _bar(
        VISITOR_LINKS,
        link_button(
            _("Login with Discord"),
            LOGIN_PATH,
            kind="primary",
            leaves_app=True,
            class_name=(
                "btn-sm sm:btn-md max-sm:h-auto max-sm:min-h-8 max-sm:min-w-0 max-sm:shrink max-sm:py-1 "
                "max-sm:whitespace-normal max-sm:leading-tight"
            ),
        ),
        home="/",
    )


def member_bar(*, logout: bool = True) -> rx.Component:
    """Return the navigation of the signed-in screens; without `logout` where the screen itself has that button."""
    return _bar(
        MEMBER_LINKS,
        _NavLink.create(
            rx.icon("user-round", size=18, aria_hidden="true"),
            rx.el.span(
                rx.cond(SessionState.name != "", SessionState.name, _("Account")), class_name="max-w-32 truncate"
            ),
            to="/account",
            custom_attrs={
                "aria-label": rx.cond(
                    SessionState.name != "", filled(_("Account of {name}"), name=SessionState.name), _("Account")
                )
            },
            class_name="btn btn-ghost btn-sm aria-[current=page]:bg-base-200",
        ),
        *([_log_out_button("hidden lg:inline-flex")] if logout else []),
        home="/dashboard",
        beside=(_invite_button(f"{_IN_BAR} cursor-pointer"),),
        below=(
            _invite_button(f"{_IN_BAR} w-full cursor-pointer text-start"),
            *([_log_out_button("mt-1 w-full justify-start px-3")] if logout else []),
        ),
    )


def _invite_button(class_name: str) -> rx.Component:
    """Return the navigation's invite link: Discord's own page, in a new tab, where the server is chosen."""
    return rx.el.button(
        _("Invite Bot"),
        rx.icon("external-link", size=14, class_name="ms-1.5 inline", aria_hidden="true"),
        type="button",
        on_click=NavigationInviteState.open,
        title=_("Opens Discord in a new tab"),
        class_name=class_name,
    )


def _log_out_button(class_name: str) -> rx.Component:
    return rx.cond(
        SessionState.audience == MEMBER,
        button(_("Logout"), kind="quiet", icon="log-out", class_name=f"btn-sm {class_name}", on_click=log_out()),
        # Before the socket connects a button does nothing yet, but a link works.
        link_button(
            _("Logout"), LOGOUT_PATH, kind="quiet", icon="log-out", leaves_app=True, class_name=f"btn-sm {class_name}"
        ),
    )


def _bar(
    links: tuple[tuple[str, str], ...],
    *actions: rx.Component,
    home: str,
    beside: tuple[rx.Component, ...] = (),
    below: tuple[rx.Component, ...] = (),
) -> rx.Component:
    return rx.el.header(
        rx.el.div(
            wordmark(home),
            rx.el.nav(
                *[_bar_link(label, href) for label, href in links],
                *beside,
                class_name="hidden flex-wrap items-center gap-1 lg:flex",
                aria_label=_("Main"),
            ),
            # With large text the actions go below the name, which would leave them no room.
            rx.el.div(*actions, _menu(links, below), class_name="ms-auto flex min-w-0 items-center gap-1"),
            class_name=(
                "mx-auto flex min-h-16 max-w-6xl flex-wrap items-center justify-between gap-x-3 gap-y-2 "
                "px-4 py-2 sm:px-6"
            ),
        ),
        class_name="around-content border-b hairline bg-base-100",
    )


def _menu(links: tuple[tuple[str, str], ...], below: tuple[rx.Component, ...]) -> rx.Component:
    """Return the menu of narrow screens; the browser's own disclosure, so it works before any script."""
    return rx.el.details(
        rx.el.summary(
            rx.icon("menu", size=20, aria_hidden="true"),
            aria_label=_("Menu"),
            title=_("Menu"),
            class_name="btn btn-ghost btn-sm btn-square list-none",
        ),
        rx.el.div(
            rx.el.nav(
                *[_bar_link(label, href) for label, href in links],
                class_name="flex flex-col",
                aria_label=_("Main, small"),
            ),
            *below,
            class_name="surface absolute inset-e-0 top-full z-30 mt-2 w-60 p-2",
        ),
        class_name="relative lg:hidden",
    )


def _bar_link(label: str, href: str) -> rx.Component:
    """Return a link of the bar, marked on its own page; an anchor and the support chat are not pages."""
    if "#" in href or href == SUPPORT_PATH:
        return plain_link(label, href)
    return _NavLink.create(label, to=href, also=list(ALSO.get(href, ())), class_name=f"{_IN_BAR} {_MARKED}")


def plain_link(label: str, href: str) -> rx.Component:
    """Return a link that never marks itself, for the bar and the footer; the support chat is loaded as a new page."""
    return rx.el.a(label, href=href, reload_document=href == SUPPORT_PATH, class_name=_IN_BAR)
