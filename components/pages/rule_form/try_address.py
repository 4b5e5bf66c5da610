"""Trying an address on the rule as it is filled in: the entry, and the answer with its evidence."""

import reflex as rx

from components.pages.server.evidence import requirement_line
from components.ui.answer_badge import answer_badge
from components.ui.button import button
from components.ui.field import field, text_input
from components.ui.placeholders import progress
from locales import _
from state.rule_form.rule_form import RuleFormState
from state.rule_form.try_address import ADDRESS_INPUT, TrialState

TRIAL_FORM = "trial-form"
"""The form of the address entry: Enter tries the address there instead of submitting the rule."""


def trial_form() -> rx.Component:
    """Return the form of the address entry, outside the rule's form because forms cannot be nested."""
    return rx.el.form(id=TRIAL_FORM, on_submit=TrialState.try_address, class_name="hidden")


def trial_panel() -> rx.Component:
    """Return the entry, and the answer while it is about the rule as filled in."""
    return rx.el.div(
        field(
            _("Address"),
            rx.el.div(
                text_input(
                    ADDRESS_INPUT,
                    form=TRIAL_FORM,
                    spell_check=False,
                    placeholder=_("0x..., wallet.eth or a Solana address"),
                ),
                button(_("Try"), icon="flask-conical", type="submit", form=TRIAL_FORM, busy=TrialState.busy),
                class_name="flex gap-2",
            ),
            hint=_("What the rule says about a member with this wallet alone. Nothing is stored."),
        ),
        rx.cond(TrialState.of_rule == RuleFormState.conditions_key, _answer()),
        class_name="flex flex-col gap-4",
    )


def _answer() -> rx.Component:
    return rx.cond(
        TrialState.busy,
        progress(_("Reading what the address holds…")),
        rx.cond(
            TrialState.fault != "",
            rx.el.p(TrialState.fault, class_name="font-medium text-error", role="alert"),
            rx.cond(TrialState.outcome != "", _found()),
        ),
    )


def _found() -> rx.Component:
    several = rx.Var.create(TrialState.lines).length() > 1
    return rx.el.div(
        rx.el.p(
            answer_badge(rx.Var.create(TrialState.outcome).to(str)),
            rx.el.span(TrialState.tried, class_name="code min-w-0 break-all text-sm"),
            class_name="flex flex-wrap items-center gap-x-3 gap-y-1",
        ),
        rx.el.ul(
            rx.foreach(TrialState.lines, lambda line: requirement_line(line, several)),
            class_name="mt-2 grid grid-cols-1 gap-2 border-s-2 hairline ps-4",
        ),
        role="status",
    )
