"""The placeholders of a server's tabs, its banner while the bot is away, and the screen for no such server."""

import reflex as rx

from components.ui.button import button, link_button
from components.ui.card import card
from components.ui.placeholders import could_not_load, empty, skeleton, waiting
from locales import _
from settings import settings
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


def bot_is_away() -> rx.Component:
    """Return the banner of a server without the bot, with the button to invite it."""
    bot = settings().bot_name
    return rx.el.div(
        rx.el.p(
            _("{bot} is not in this server, so no role can be given or taken.").format(bot=bot),
            class_name="min-w-0 font-medium",
        ),
        button(_("Invite Bot"), kind="primary", class_name="btn-sm", on_click=ServerPageState.invite),
        class_name="mb-6 flex flex-wrap items-center justify-between gap-3 rounded-box border border-warning/50 "
        "bg-warning/12 p-4",
        role="alert",
    )
