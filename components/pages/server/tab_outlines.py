"""Which placeholder a tab of a server shows and with which outline, and the screen for a server that does not exist."""

import reflex as rx

from components.ui.button import link_button
from components.ui.card import card
from components.ui.placeholders import could_not_load, empty, skeleton, waiting
from locales import _
from state.dashboard.server_page import ServerPageState, ServerTab


def once_loaded(
    tab: type[ServerTab], load: rx.event.EventType[()], content: rx.Component, *outline: rx.Component
) -> rx.Component:
    """Return the tab's content; until it is loaded, its outline; after a failure, the reason and a retry button."""
    return rx.cond(
        tab.shown_for == ServerPageState.server_id,
        content,
        rx.cond(tab.fault != "", could_not_load(load, tab.fault), waiting(load, *outline)),
    )


def list_outline(count: int, height: str, gap: str = "gap-2") -> rx.Component:
    """Return the outline of a list."""
    return rx.el.div(*[skeleton(height) for _ in range(count)], class_name=f"grid grid-cols-1 {gap}")


def missing_server(*, whole_screen: bool = True) -> rx.Component:
    """Return the screen for a server that does not exist here, or that the person does not run.

    `whole_screen` is False below a page's own heading.
    """
    return card(
        empty(
            "server-off",
            _("Server not found"),
            _("It does not exist here, or you are not one of its administrators."),
            link_button(_("Back to Dashboard"), "/dashboard", kind="primary"),
            whole_screen=whole_screen,
        )
    )
