"""How many addresses meet the rule as it is filled in, and how many of them have been verified day by day."""

import reflex as rx

from components.ui.button import button
from components.ui.chart import bar, base_line, drawing, heading_cell, table_behind
from components.ui.effects.texts import filled
from locales import _
from state.rule_form.reach import ReachDayView, ReachState
from state.rule_form.rule_form import RuleFormState


def reach_panel() -> rx.Component:
    """Return the button, the numbers while they are about the rule as filled in, and a stored rule's days."""
    return rx.el.div(
        rx.el.div(
            button(
                _("Count Holders"),
                icon="users",
                type="button",
                on_click=ReachState.count,
                busy=ReachState.busy & (ReachState.of_rule == RuleFormState.conditions_key),
            ),
            rx.el.p(
                _("Counted on chain in the background. Each address counts on its own."),
                class_name="muted mt-2 text-sm",
            ),
        ),
        rx.cond(ReachState.of_rule == RuleFormState.conditions_key, _numbers()),
        rx.cond(ReachState.bars, _days()),
        on_mount=ReachState.load_days,
        class_name="flex flex-col gap-4",
    )


def _numbers() -> rx.Component:
    return rx.el.div(
        rx.cond(
            ReachState.busy,
            rx.el.div(
                rx.el.progress(
                    value=ReachState.percent,
                    max=100,
                    class_name="progress progress-primary w-full",
                    aria_label=_("Counting holders"),
                ),
                rx.el.p(filled(_("Counting… {percent}%"), percent=ReachState.percent), class_name="muted text-sm"),
                class_name="flex flex-col gap-2",
            ),
        ),
        rx.cond(ReachState.sentence != "", rx.el.p(ReachState.sentence, class_name="font-medium")),
        rx.cond(ReachState.note != "", rx.el.p(ReachState.note, class_name="text-sm text-warning")),
        rx.cond(
            ReachState.fault != "",
            rx.el.p(ReachState.fault, class_name="font-medium text-error", role="alert"),
            rx.foreach(
                ReachState.places, lambda place: rx.el.p(place, class_name="muted tabular-nums text-sm", key=place)
            ),
        ),
        role="status",
    )


def _days() -> rx.Component:
    return rx.el.div(
        drawing(
            "h-24",
            ReachState.summary,
            rx.foreach(ReachState.bars, lambda one: bar(one, "fill-primary")),
            base_line(),
        ),
        rx.el.p(ReachState.summary, class_name="muted mt-3 text-sm"),
        table_behind(
            _("Numbers as a table"),
            *(heading_cell(label, "col") for label in (_("Day"), _("Holders"), _("Verified"))),
            rows=rx.foreach(ReachState.days, _row),
            caption=_("Holders and verified ones by day"),
        ),
    )  # fmt: skip


def _row(one: rx.vars.ObjectVar[ReachDayView]) -> rx.Component:
    return rx.el.tr(
        heading_cell(one.day, "row"),
        rx.el.td(one.holders, class_name="tabular-nums"),
        rx.el.td(one.verified, class_name="tabular-nums"),
        key=one.day,
    )
