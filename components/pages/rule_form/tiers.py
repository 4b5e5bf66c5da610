"""The further tiers of a new rule: amounts and a role in each row."""

import reflex as rx

from components.ui.button import button
from components.ui.effects.refused_field import new_field
from components.ui.effects.texts import filled
from components.ui.field import typed_input, typed_select
from locales import _
from state.rule_form.role_options import RoleOptionView
from state.rule_form.rule_form import RuleFormState
from state.rule_form.tiers import LEAST, MOST, ROLE, TierView, tier_control


def tiers() -> rx.Component:
    """Return the rows of the further tiers, and the button that adds one."""
    return rx.el.div(
        rx.cond(
            RuleFormState.tiers,
            rx.el.ol(
                rx.foreach(RuleFormState.tiers, _tier), class_name="flex flex-col gap-3", aria_label=_("Further tiers")
            ),
        ),
        rx.el.div(
            button(_("Add a tier"), icon="plus", on_click=RuleFormState.add_tier, class_name="btn-sm"),
            rx.el.p(
                _(
                    "Members who hold more get another role: 1 to 4 Holder, 5 to 19 Collector, 20 or more Whale. Each "
                    "tier becomes a rule."
                ),
                class_name="muted min-w-0 flex-1 text-sm",
            ),
            class_name="flex flex-col items-start gap-3 sm:flex-row sm:items-center",
        ),
        new_field(RuleFormState.tiers_added, RuleFormState.first_of_added),
        class_name="flex flex-col gap-3",
    )


def tiers_left_out() -> rx.Component:
    """Return the remark that the tiers that were filled in are not saved with the present conditions."""
    return rx.el.p(
        _("The further tiers are left out: only a new rule with a single condition on an amount has tiers."),
        class_name="text-sm font-medium text-warning",
        role="status",
    )


def _tier(tier: rx.vars.ObjectVar[TierView]) -> rx.Component:
    name = tier.title
    return rx.el.li(
        rx.el.span(name, class_name="w-full text-sm font-semibold sm:w-14"),
        _amount(tier, LEAST, tier.least, filled(_("{name}: from"), name=name), _("From")),
        rx.el.span(_("to"), class_name="text-sm"),
        _amount(tier, MOST, tier.most, filled(_("{name}: to"), name=name), _("No limit")),
        typed_select(
            rx.el.option(_("Choose a role"), value=""),
            rx.foreach(RuleFormState.roles, role_option),
            value=tier.role,
            on_change=lambda value: RuleFormState.enter_tier(tier.number, ROLE, value),
            name=tier_control(tier.number, ROLE),
            aria_label=filled(_("{name}: role"), name=name),
            class_name="select min-w-40 flex-1",
        ),
        rx.el.button(
            rx.icon("trash-2", size=16, aria_hidden="true"),
            type="button",
            on_click=RuleFormState.remove_tier(tier.number),
            aria_label=filled(_("Remove {name}"), name=tier.title),
            class_name="btn btn-ghost btn-sm btn-square",
        ),
        class_name="flex flex-wrap items-center gap-2",
        key=tier.number,
    )


def _amount(
    tier: rx.vars.ObjectVar[TierView], field: str, value: rx.Var[str], label: rx.Var[str] | str, placeholder: str
) -> rx.Component:
    return typed_input(
        id=tier_control(tier.number, field),
        name=tier_control(tier.number, field),
        type="text",
        input_mode="numeric",
        value=value,
        on_change=lambda typed: RuleFormState.enter_tier(tier.number, field, typed),
        aria_label=label,
        placeholder=placeholder,
        class_name="input w-24",
    )


def role_option(role: rx.vars.ObjectVar[RoleOptionView]) -> rx.Component:
    """Return a role to choose; one that cannot be given says why."""
    return rx.el.option(role.label, value=role.id, disabled=~role.assignable, key=role.id)
