"""The Health tab of a server: what works, what does not, and how to fix it."""

import reflex as rx

from components.pages.server.tab_outlines import list_outline, once_loaded
from components.ui.badge import state_icon
from components.ui.button import button
from components.ui.card import card, card_title
from components.ui.effects.every import every
from components.ui.effects.texts import filled
from locales import _
from state.core.timing import SERVER_HEALTH_POLL_SECONDS
from state.server.health import HealthLineView, ServerHealthState

_WORDS = {"good": _("Works"), "warning": _("Warning"), "bad": _("Problem"), "off": _("Not in use")}


def server_health_tab() -> rx.Component:
    """Return one line per subject, refreshed while the tab is open."""
    return rx.el.div(
        every(SERVER_HEALTH_POLL_SECONDS, ServerHealthState.load, seen_only=True),
        once_loaded(ServerHealthState, ServerHealthState.load, _shown(), list_outline(3, "h-40", "gap-5")),
    )


def _shown() -> rx.Component:
    return rx.el.div(
        rx.el.div(
            state_icon(ServerHealthState.state, 28),
            rx.el.div(
                rx.el.p(ServerHealthState.headline, class_name="display text-xl font-semibold", role="status"),
                rx.el.p(
                    filled(
                        _("Checked at {checked}. This page checks again every few seconds."),
                        checked=ServerHealthState.checked,
                    ),
                    class_name="muted text-sm",
                ),
            ),
            class_name="surface flex items-center gap-4 p-5 sm:p-6",
        ),
        _group(_("This server"), _("The bot, its rights, and the roles that rules give."), ServerHealthState.here),
        _group(
            _("Background work"),
            _("The daily sweep, the queue, and how far each chain is followed."),
            ServerHealthState.work,
        ),
        _group(_("Providers"), _("Outside services that this server depends on."), ServerHealthState.providers),
        rx.el.details(
            rx.el.summary(
                _("Chains that no rule here uses"),
                class_name="cursor-pointer rounded-field p-5 font-semibold -outline-offset-3 sm:p-6",
            ),
            rx.el.ul(
                rx.foreach(ServerHealthState.others, _line), class_name="divide-y divide-base-300 px-5 pb-3 sm:px-6"
            ),
            class_name="surface",
        ),
        class_name="grid grid-cols-1 gap-5",
    )


def _group(title: str, hint: str, lines: list[HealthLineView]) -> rx.Component:
    return card(card_title(title, hint), rx.el.ul(rx.foreach(lines, _line), class_name="divide-y divide-base-300"))


def _line(line: rx.vars.ObjectVar[HealthLineView]) -> rx.Component:
    return rx.el.li(
        rx.el.span(state_icon(line.state, 20), class_name="mt-0.5 shrink-0"),
        rx.el.div(
            rx.el.div(
                rx.el.h3(line.title, class_name="break-words font-semibold"),
                rx.el.span(
                    rx.match(line.state, *_WORDS.items(), ""),
                    class_name="muted text-xs font-semibold uppercase tracking-wide",
                ),
                rx.cond(line.since != "", rx.el.span(line.since, class_name="muted text-xs")),
                class_name="flex flex-wrap items-baseline gap-x-3",
            ),
            rx.el.p(line.text, class_name="muted mt-0.5 break-words"),
            rx.cond(
                line.mend != "",
                rx.el.p(
                    rx.icon("wrench", size=14, class_name="mt-1 shrink-0", aria_hidden="true"),
                    rx.el.span(line.mend),
                    class_name="mt-1 flex gap-2 text-sm font-medium",
                ),
            ),
            rx.cond(
                line.role != "",
                button(
                    _("Follow the rules again"),
                    icon="play",
                    class_name="btn-sm mt-3",
                    on_click=ServerHealthState.follow_again(line.role),
                    aria_label=filled(_("Follow the rules again: {title}"), title=line.title),
                ),
            ),
            class_name="min-w-0 flex-1",
        ),
        key=line.key,
        class_name="flex items-start gap-3 py-3",
    )
