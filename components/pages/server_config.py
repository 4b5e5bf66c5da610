"""A server's configuration. Its tabs are in one table; each has its own component."""

import reflex as rx

from components.layout.frame import member_frame, page_head
from components.ui.badge import badge, role_mark
from components.ui.button import button, link_button
from components.ui.card import card
from components.ui.dialog import confirm
from components.ui.empty import empty, skeleton
from settings import settings
from state.rules import RuleRowView, RulesState, ServerPageState


def server_config() -> rx.Component:
    """The server's name, then its tabs."""
    return member_frame(
        rx.cond(
            RulesState.loaded,
            rx.cond(RulesState.missing, _missing(), _server()),
            rx.el.div(skeleton("h-9 w-72"), skeleton("mt-8 h-40"), role="status", aria_label="Loading"),
        ),
    )


def _missing() -> rx.Component:
    return card(
        empty(
            "server-off",
            "Server not found",
            "It does not exist here, or you are not one of its administrators.",
            link_button("Back to Dashboard", "/dashboard", kind="primary"),
        )
    )


def _server() -> rx.Component:
    return rx.el.div(
        page_head(
            ServerPageState.name,
            "What members have to hold, and which role that gives them.",
            link_button("Back to Dashboard", "/dashboard", kind="quiet", icon="arrow-left"),
            link_button("Add Rule", ServerPageState.add_rule_url, kind="primary", icon="plus"),
        ),
        rx.cond(RulesState.bot_invited, rx.fragment(), _bot_is_away()),
        _tabs(),
        rules_tab(),
    )


def _bot_is_away() -> rx.Component:
    return rx.el.p(
        f"{settings().bot_name} is not in this server, so no role can be given or taken. Invite it again from the "
        "dashboard.",
        class_name="mb-6 rounded-box bg-warning/12 p-4 font-medium text-warning",
        role="alert",
    )


def _tabs() -> rx.Component:
    return rx.el.nav(
        rx.el.a(
            "Rules",
            href=ServerPageState.config_url,
            aria_current="page",
            class_name="-mb-px border-b-2 border-primary px-1 pb-3 font-semibold",
        ),
        class_name="mb-6 flex gap-6 border-b hairline",
        aria_label="Server configuration",
    )


def rules_tab() -> rx.Component:
    """The list of rules, and the question before one is deleted."""
    return rx.el.div(
        rx.cond(
            RulesState.rows,
            rx.el.ul(rx.foreach(RulesState.rows, _rule), class_name="grid gap-4"),
            card(
                empty(
                    "list-plus",
                    "No rules yet",
                    "A rule says what somebody has to hold and which role that gives.",
                    link_button("Add Rule", ServerPageState.add_rule_url, kind="primary", icon="plus"),
                )
            ),
        ),
        confirm(
            is_open=RulesState.asked_id != 0,
            on_open_change=RulesState.keep,
            title=f"Delete {RulesState.asked_name}?",
            text=RulesState.asked_text,
            cancel=button("Keep it", kind="quiet", on_click=RulesState.keep(False)),
            action=button("Delete rule", kind="danger", on_click=RulesState.delete),
        ),
    )


def _rule(rule: rx.vars.ObjectVar[RuleRowView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.div(
                rx.el.h2(rule.name, class_name="break-words text-lg font-semibold"),
                _state_badge(rule),
                class_name="flex flex-wrap items-center gap-2",
            ),
            rx.el.p(rule.summary, class_name="muted mt-1 break-words"),
            rx.cond(
                rule.pause_reason != "",
                rx.el.p(rule.pause_reason, class_name="mt-1 text-sm font-medium text-warning"),
            ),
            rx.el.div(
                rx.icon("arrow-right", size=16, aria_hidden="true"),
                role_mark(rule.role_name, rule.role_color),
                rx.el.span(
                    rx.cond(rule.holders == 1, "1 holder", f"{rule.holders} holders"), class_name="muted text-sm"
                ),
                class_name="mt-3 flex flex-wrap items-center gap-3",
            ),
            class_name="min-w-0 flex-1 basis-64",
        ),
        rx.el.div(_pause_button(rule), _delete_button(rule), class_name="flex gap-2"),
        key=rule.id,
        class_name="surface flex flex-wrap items-center justify-between gap-4 p-5",
    )


def _state_badge(rule: rx.vars.ObjectVar[RuleRowView]) -> rx.Component | rx.Var[rx.Component]:
    return rx.match(
        rule.state,
        ("active", badge("Active", "good")),
        ("paused", badge("Paused", "warning")),
        badge("Shadow", "info"),
    )


def _pause_button(rule: rx.vars.ObjectVar[RuleRowView]) -> rx.Component:
    busy = RulesState.working == rule.id
    return rx.cond(
        rule.state == "paused",
        button("Resume", icon="play", busy=busy, on_click=RulesState.resume(rule.id)),
        button("Pause", icon="pause", busy=busy, on_click=RulesState.pause(rule.id)),
    )


def _delete_button(rule: rx.vars.ObjectVar[RuleRowView]) -> rx.Component:
    return button(
        "Delete",
        kind="quiet",
        icon="trash-2",
        disabled=RulesState.working == rule.id,
        on_click=RulesState.ask_delete(rule.id),
    )
