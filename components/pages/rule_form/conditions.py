"""A rule's conditions: the list, how many must hold, and groups."""

import reflex as rx

from components.pages.rule_form.condition_fields import condition_fields
from components.ui.badge import badge
from components.ui.button import button
from components.ui.effects.texts import about, filled
from components.ui.field import number_input, typed_select
from locales import _
from state.rule_form.conditions import ROOT, ConditionView, SectionView
from state.rule_form.rule_form import RuleFormState

MODES = (("all", _("all")), ("any", _("any one")), ("some", _("at least")), ("none", _("none")))


def rule_conditions() -> rx.Component:
    """Return one condition as a plain form, or several as a list with one open."""
    return rx.cond(
        RuleFormState.too_deep,
        _only_words(),
        rx.el.div(
            rx.cond(
                RuleFormState.composed,
                rx.el.div(rx.foreach(RuleFormState.sections, _section), class_name="flex flex-col gap-4"),
                condition_fields(),
            ),
            rx.el.div(
                button(
                    _("Add another condition"),
                    kind="quiet",
                    icon="plus",
                    class_name="btn-sm",
                    on_click=RuleFormState.add_condition(ROOT),
                ),
                rx.cond(
                    RuleFormState.composed,
                    button(
                        _("Add a group"),
                        kind="quiet",
                        icon="group",
                        class_name="btn-sm",
                        on_click=RuleFormState.add_group,
                    ),
                ),
                class_name="-ms-3 flex flex-wrap gap-1",
            ),
            class_name="flex flex-col gap-4",
        ),
    )


def _only_words() -> rx.Component:
    return rx.el.p(
        _(
            "This rule has groups within groups, which this form does not show. Its conditions can be changed through "
            "the API; its role and what follows can be changed here."
        ),
        class_name="rounded-box bg-info/12 p-4 text-sm font-medium text-info",
    )


def _section(section: rx.vars.ObjectVar[SectionView]) -> rx.Component:
    rows = rx.el.ul(rx.foreach(section.rows.to(list[ConditionView]), _condition), class_name="flex flex-col gap-3")
    return rx.cond(
        section.number == ROOT,
        rx.el.div(_join(_("Members must meet"), section), rows, class_name="flex flex-col gap-3", key=section.number),
        rx.el.div(
            rx.el.h3(section.title, class_name="font-semibold"),
            _join(_("Of these"), section),
            rows,
            button(
                _("Add a condition to this group"),
                kind="quiet",
                icon="plus",
                class_name="btn-sm -ms-3 w-fit",
                on_click=RuleFormState.add_condition(section.number),
                aria_label=about(_("Add a condition to this group"), section.title),
            ),
            class_name="flex flex-col gap-3 rounded-box border hairline bg-base-200 p-3 sm:p-4",
            key=section.number,
        ),
    )


def _join(words: str, section: rx.vars.ObjectVar[SectionView]) -> rx.Component:
    """Return a sentence with a choice of how many parts must hold; a single part leaves nothing to choose."""
    return rx.cond(
        section.size == 1,
        rx.el.p(
            rx.cond(section.mode == "none", _("This must not be met:"), _("This must be met:")), class_name="text-sm"
        ),
        _choice_of_mode(words, section),
    )


def _choice_of_mode(words: str, section: rx.vars.ObjectVar[SectionView]) -> rx.Component:
    root = section.number == ROOT
    return rx.el.div(
        rx.el.span(words),
        rx.el.div(
            typed_select(
                *[rx.el.option(label, value=value) for value, label in MODES],
                value=section.mode,
                on_change=lambda value: RuleFormState.choose_mode(section.number, value),
                aria_label=rx.cond(
                    root,
                    _("How many conditions must be met"),
                    filled(_("How many of {title} must be met"), title=section.title),
                ),
                class_name="select select-sm",
            ),
            class_name="w-28",
        ),
        rx.cond(
            section.mode == "some",
            rx.el.div(
                number_input(
                    min=1,
                    step=1,
                    default_value=section.least,
                    on_change=lambda value: RuleFormState.enter_least(section.number, value),
                    aria_label=rx.cond(
                        root,
                        _("Minimum number of conditions"),
                        filled(_("Minimum number of conditions of {title}"), title=section.title),
                    ),
                    class_name="input input-sm",
                ),
                class_name="w-16",
            ),
        ),
        rx.el.span(
            rx.cond(
                root,
                filled(_("of these {size}:"), size=section.size),
                filled(_("of {size} must be met:"), size=section.size),
            )
        ),
        class_name="flex flex-wrap items-center gap-2 text-sm",
    )


def _condition(row: rx.vars.ObjectVar[ConditionView]) -> rx.Component:
    return rx.cond(RuleFormState.open == row.number, _open(row), _closed(row))


def _open(row: rx.vars.ObjectVar[ConditionView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.h3(row.title, class_name="font-semibold"),
            rx.el.div(
                rx.el.label(
                    rx.el.input(
                        type="checkbox",
                        default_checked=row.negated,
                        on_change=lambda value: RuleFormState.negate(row.number, value),
                        class_name="toggle toggle-sm",
                    ),
                    _("Must not hold"),
                    class_name="flex cursor-pointer items-center gap-2 text-sm",
                ),
                _remove(row),
                class_name="flex items-center gap-2",
            ),
            class_name="mb-4 flex flex-wrap items-center justify-between gap-3",
        ),
        condition_fields(),
        class_name="rounded-box border-2 border-primary/40 bg-base-100 p-4 sm:p-5",
        key=row.number,
    )


def _closed(row: rx.vars.ObjectVar[ConditionView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.div(
                rx.el.h3(row.title, class_name="text-sm font-semibold"),
                rx.cond(row.negated, badge(_("must not hold"), "warning")),
                class_name="flex flex-wrap items-center gap-2",
            ),
            rx.el.p(row.text, class_name=rx.cond(row.ready, "break-words text-sm", "text-sm font-medium text-warning")),
            rx.cond(row.caveat != "", rx.el.p(row.caveat, class_name="mt-1 text-sm text-warning")),
            class_name="min-w-0 flex-1",
        ),
        rx.el.div(
            rx.el.button(
                _("Edit"),
                rx.el.span(f" {row.title}", class_name="sr-only"),
                type="button",
                on_click=RuleFormState.open_condition(row.number),
                class_name="btn btn-ghost btn-sm",
            ),
            _remove(row),
            class_name="flex items-center",
        ),
        class_name="flex items-center justify-between gap-3 rounded-box border hairline bg-base-100 py-2.5 ps-4 pe-2",
        key=row.number,
    )


def _remove(row: rx.vars.ObjectVar[ConditionView]) -> rx.Component:
    return rx.el.button(
        rx.icon("trash-2", size=16, aria_hidden="true"),
        type="button",
        on_click=RuleFormState.remove_condition(row.number),
        aria_label=filled(_("Remove {title}"), title=row.title),
        class_name="btn btn-ghost btn-sm btn-square",
    )
