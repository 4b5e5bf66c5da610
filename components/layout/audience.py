"""Shows each audience its own face of a page, and never the other's."""

from collections.abc import Callable

import reflex as rx

from components.layout.frame import member_frame
from components.ui.effects.reload_button import reload_button
from components.ui.placeholders import skeleton, skeleton_cards
from locales import _
from state.core.session import LEFT, MEMBER, SESSION_PARAMETER, STORAGE_KEY, UNKNOWN, VISITOR, SessionState
from state.core.timing import LOADING_MILLISECONDS, PATIENCE_MILLISECONDS

Screen = Callable[[], rx.Component]

# When another tab changes the stored session id, this tab reloads.
_OTHER_TAB = (
    f"(key, before, after) => {{ if (key !== '{STORAGE_KEY}' || before === after) return;"
    "if (after) document.documentElement.dataset.signedIn = '';"
    "window.location.reload() }"
)

# Not by navigation, which would cancel one that the person has just started.
_CLEAN_ADDRESS = (
    "const address = new URL(window.location.href);"
    f"address.searchParams.delete('{SESSION_PARAMETER}');"
    "window.history.replaceState(window.history.state, '', address)"
)


def for_audience(visitors: Screen, members: Screen, left: Screen | None = None) -> rx.Component:
    """Return a page with two faces, and a third (`left`) for members whose session ends while it is open.

    Until the socket connects both faces are in the page, the members' as a skeleton. The document's `data-audience`,
    set by the server that read the cookie, shows only one of them.
    """
    audience = SessionState.audience
    visiting = (audience == UNKNOWN) | (audience == VISITOR)
    return rx.fragment(
        _session_events(),
        rx.cond(visiting, rx.el.div(visitors(), class_name=rx.cond(audience == UNKNOWN, "for-visitors", ""))),
        rx.cond(audience == MEMBER, members()),
        rx.cond(audience == UNKNOWN, rx.el.div(member_frame(loading()), class_name="for-members")),
        rx.cond(audience == LEFT, left() if left is not None else _start_afresh()),
    )


def for_everybody(screen: Screen) -> rx.Component:
    """Return a page with the same content for everybody, which shows before the socket connects."""
    return rx.fragment(_session_events(), screen())


def _session_events() -> rx.Component:
    return rx.fragment(
        rx.window_event_listener(on_storage=_reload_on_other_tab),
        rx.cond(SessionState.handed_over > 0, _clean_address()),
    )


def _reload_on_other_tab(key: rx.Var[str], old: rx.Var[str], new: rx.Var[str], _url: rx.Var[str]) -> rx.event.EventSpec:
    return rx.run_script(
        rx.Var(f"(({_OTHER_TAB})({key!s}, {old!s}, {new!s}))", _var_data=rx.vars.VarData.merge(key._get_all_var_data()))
    )


def _clean_address() -> rx.Component:
    """Remove the session id from the URL once the session is settled."""
    script = rx.run_script(f"(() => {{ {_CLEAN_ADDRESS} }})()")
    return rx.el.span(key=SessionState.handed_over, on_mount=script, class_name="hidden")


def _start_afresh() -> rx.Component:
    """Reload the document, which then is the one for visitors."""
    return rx.el.div(on_mount=rx.run_script("window.location.reload()"))


def loading() -> rx.Component:
    """Show "Loading" for at most one second, then a neutral skeleton, and after a while a button to reload the page."""
    return rx.el.div(
        rx.el.p(_("Loading..."), class_name="loading-word muted", role="status"),
        rx.el.div(
            skeleton("h-9 w-64"),
            skeleton("mt-3 h-5 w-96 max-w-full"),
            rx.el.div(skeleton_cards(), class_name="mt-8"),
            class_name="loading-skeleton",
            aria_hidden="true",
        ),
        rx.el.p(
            _("This takes longer than usual."),
            " ",
            reload_button(_("Try again"), class_name="link font-semibold"),
            class_name="late mt-6",
        ),
        style={"--loading": f"{LOADING_MILLISECONDS}ms", "--patience": f"{PATIENCE_MILLISECONDS}ms"},
    )
