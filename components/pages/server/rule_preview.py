"""The preview of a rule: four numbers and the names behind them, updated live."""

import reflex as rx

from components.ui.badge import badge
from components.ui.effects.texts import filled
from components.ui.placeholders import progress
from locales import _
from state.rule_form.preview import PersonView, RulePreviewState


def impact_panel(*, in_form: bool = False) -> rx.Component:
    """Return who would gain, keep and lose the role, and who is unknown, for a dialog or the form.

    In the form it is as high while it is read as afterwards, so that the controls below it stay where they are.
    """
    return rx.el.div(
        rx.cond(
            RulePreviewState.fault != "",
            rx.el.p(RulePreviewState.fault, class_name="font-medium text-error", role="alert"),
            rx.el.div(
                _numbers("grid-cols-2 sm:grid-cols-4" if in_form else "grid-cols-2"),
                rx.el.div(
                    _progress(),
                    _too_few(),
                    class_name=f"flex flex-col gap-2 {'min-h-11' if in_form else 'empty:hidden'}",
                ),
                _names("invisible" if in_form else "hidden"),
                class_name="flex flex-col gap-4",
            ),
        ),
        aria_busy=RulePreviewState.busy,
    )


def _numbers(columns: str) -> rx.Component:
    return rx.el.dl(
        _number(_("Gain"), RulePreviewState.gain, "text-success"),
        _number(_("Keep"), RulePreviewState.keep, ""),
        _number(_("Lose"), RulePreviewState.lose, "text-error"),
        _number(_("Unknown"), RulePreviewState.unknown, "text-warning"),
        class_name=f"grid {columns} gap-3",
    )


def _number(label: str, count: int | rx.Var[int], tone: str) -> rx.Component:
    value = rx.Var.create(count).to(int)
    known = RulePreviewState.known | (RulePreviewState.looked > 0)
    return rx.el.div(
        rx.el.dt(label, class_name="muted text-sm"),
        rx.el.dd(
            rx.cond(known, value.to_string(), "–"),
            class_name=rx.cond(
                known & (value > 0),
                f"display text-2xl font-semibold tabular-nums {tone}",
                "display muted text-2xl font-semibold tabular-nums",
            ),
        ),
        class_name="rounded-field bg-base-200 px-4 py-3",
    )


def _progress() -> rx.Component:
    part = filled(
        _("Looked at {looked} of {concerned} members"),
        looked=RulePreviewState.looked,
        concerned=RulePreviewState.concerned,
    )
    return rx.cond(
        RulePreviewState.busy,
        progress(rx.cond(RulePreviewState.concerned > 0, f"{part}…", _("Reading what members hold…"))),
        rx.cond(
            RulePreviewState.known & (RulePreviewState.looked < RulePreviewState.concerned),
            rx.el.p(
                filled(
                    _("{part}: those who have the role first, then a sample. The numbers are those of this part."),
                    part=part,
                ),
                class_name="text-sm font-medium text-warning",
            ),
            rx.cond(
                RulePreviewState.known
                & (rx.Var.create(RulePreviewState.people).length() == 0)
                & (rx.Var.create(RulePreviewState.unnamed).to(int) == 0),
                rx.el.p(_("No member known here gains or loses the role."), class_name="muted text-sm"),
            ),
        ),
    )


def _too_few() -> rx.Component:
    return rx.cond(
        rx.Var.create(RulePreviewState.unnamed).to(int) > 0,
        rx.el.p(
            _("So few people meet this, or do not, that names would show which wallets are theirs."),
            class_name="muted text-sm",
        ),
    )


def _names(unseen: str) -> rx.Component:
    # Not removed while the list is empty, so that an opened list stays open.
    return rx.el.details(
        rx.el.summary(_("Who"), class_name="w-fit cursor-pointer rounded-field text-sm font-semibold"),
        rx.el.ul(
            rx.foreach(RulePreviewState.people, _person),
            class_name="mt-3 grid grid-cols-1 max-h-72 gap-x-6 gap-y-2 overflow-y-auto sm:grid-cols-2",
            tab_index=0,
            aria_label=_("Members and what would change for them"),
        ),
        rx.cond(
            RulePreviewState.more > 0,
            rx.el.p(filled(_("and {count} more"), count=RulePreviewState.more), class_name="muted mt-2 text-sm"),
        ),
        class_name=rx.cond(RulePreviewState.people, "", unseen),
    )


def _person(person: rx.vars.ObjectVar[PersonView]) -> rx.Component:
    return rx.el.li(
        rx.el.span(person.name, dir="auto", class_name="min-w-0 flex-1 cut-name"),
        rx.cond(RulePreviewState.several_roles, rx.el.span(person.role_name, class_name="muted truncate text-sm")),
        rx.match(
            person.outcome,
            ("gain", badge(_("gains"), "good")),
            ("keep", badge(_("keeps"))),
            ("lose", badge(_("loses"), "bad")),
            badge(_("unknown"), "warning"),
        ),
        key=person.key,
        class_name="flex items-center gap-2 text-sm",
    )
