"""The banner above a server's tabs after the breaker tripped: who would lose the role, why, and two buttons."""

import reflex as rx

from components.ui.button import button
from components.ui.dialog import confirm
from components.ui.effects.every import every
from components.ui.effects.texts import filled
from locales import _
from state.core.timing import HELD_BACK_POLL_SECONDS
from state.dashboard.server_page import ServerPageState
from state.server.breaker import HeldBackRoleView, HeldBackState, Loser


def held_back_banner() -> rx.Component:
    """Return one notice per role, or nothing, and the dialog before a decision; updated live."""
    return rx.fragment(every(HELD_BACK_POLL_SECONDS, HeldBackState.look, seen_only=True), _notices())


def _notices() -> rx.Component:
    return rx.cond(
        HeldBackState.shown_for == ServerPageState.server_id,
        rx.el.div(
            rx.foreach(HeldBackState.roles, _role),
            confirm(
                is_open=HeldBackState.asked != "",
                on_open_change=HeldBackState.close_dialog,
                title=rx.cond(
                    HeldBackState.asked_approve,
                    filled(_("Take “{role}” away?"), role=HeldBackState.asked_name),
                    filled(_("Let them keep “{role}”?"), role=HeldBackState.asked_name),
                ),
                text=HeldBackState.asked_text,
                cancel=button(_("Not now"), kind="quiet", on_click=HeldBackState.close_dialog(False)),
                action=rx.cond(
                    HeldBackState.asked_approve,
                    button(_("Approve removals"), kind="danger", on_click=HeldBackState.decide),
                    button(_("Dismiss removals"), kind="primary", on_click=HeldBackState.decide),
                ),
            ),
        ),
    )


def _role(role: rx.vars.ObjectVar[HeldBackRoleView]) -> rx.Component:
    return rx.el.section(
        rx.icon("shield-alert", size=24, class_name="mt-0.5 shrink-0 text-warning", aria_hidden="true"),
        rx.el.div(
            rx.el.h2(role.headline, class_name="break-words text-lg font-semibold"),
            rx.el.p(role.since, class_name="mt-1 text-sm"),
            rx.cond(
                role.cause != "",
                rx.el.p(filled(_("Shortly before: {cause}"), cause=role.cause), class_name="mt-1 break-words text-sm"),
            ),
            rx.cond(
                role.losers,
                rx.el.details(
                    rx.el.summary(
                        filled(_("Who would lose {name}, and what both readings found"), name=role.name),
                        class_name="w-fit cursor-pointer rounded-field text-sm font-semibold underline "
                        "underline-offset-2",
                    ),
                    rx.el.ul(
                        rx.foreach(role.losers, _loser),
                        class_name="mt-2 grid grid-cols-1 max-h-72 gap-1.5 overflow-y-auto text-sm",
                        tab_index=0,
                        aria_label=filled(_("Members who would lose {name}"), name=role.name),
                    ),
                    rx.cond(role.more != "", rx.el.p(role.more, class_name="mt-1.5 text-sm")),
                    class_name="mt-3",
                ),
            ),
            rx.el.div(
                button(
                    _("Approve"),
                    kind="danger",
                    class_name="btn-sm",
                    busy=HeldBackState.deciding == role.id,
                    on_click=HeldBackState.ask(role.id, True),
                    aria_label=filled(_("Approve the removals of {name}"), name=role.name),
                ),
                button(
                    _("Dismiss"),
                    class_name="btn-sm",
                    disabled=HeldBackState.deciding == role.id,
                    on_click=HeldBackState.ask(role.id, False),
                    aria_label=filled(_("Dismiss the removals of {name}"), name=role.name),
                ),
                class_name="mt-4 flex flex-wrap gap-2",
            ),
            class_name="min-w-0 flex-1",
        ),
        key=role.id,
        aria_label=filled(_("Removals of {name} are held back"), name=role.name),
        class_name="mb-5 flex items-start gap-3 rounded-box border border-warning/50 bg-warning/12 p-5",
    )


def _loser(loser: rx.vars.ObjectVar[Loser]) -> rx.Component:
    return rx.el.li(
        rx.el.a(
            loser.name,
            href=f"{ServerPageState.config_url}&tab=members&member={loser.discord_id}",
            class_name="link font-semibold",
        ),
        rx.el.span(f": {loser.reason}", class_name="break-words"),
        key=loser.discord_id,
    )
