"""The card about a role that takes another one's place: the form, the rules that change, and the dialog."""

import reflex as rx

from components.pages.server.rule_preview import impact_panel
from components.ui.button import button
from components.ui.card import card, card_title
from components.ui.dialog import confirm
from components.ui.field import fault_of, select_field
from locales import _
from state.server.new_role import LeftRule, NewRoleState, RoleChoiceView
from state.server.rules import RulesState


def role_card() -> rx.Component:
    """Return the form for "this role became that one"; nothing while there is no rule."""
    return rx.cond(
        RulesState.rows,
        card(
            card_title(
                _("A role takes another one's place"),
                _(
                    "Renaming a role needs nothing: rules know it by its ID. If another role replaces it, or it was "
                    "deleted, let all its rules give the other one."
                ),
            ),
            rx.cond(
                NewRoleState.is_open,
                _form(),
                button(
                    _("Replace a role"),
                    icon="replace",
                    class_name="btn-sm",
                    busy=NewRoleState.opening,
                    on_click=NewRoleState.open_form(""),
                ),
            ),
            _question(),
            id="replace-role",
            class_name="mt-8",
        ),
    )


def _form() -> rx.Component:
    return rx.el.div(
        rx.el.div(
            select_field(
                _("Old role"),
                "oldRole",
                rx.foreach(NewRoleState.old_roles, _option),
                value=NewRoleState.old,
                on_change=NewRoleState.set_old,
                error=fault_of(NewRoleState, "oldRole"),
            ),
            select_field(
                _("New role"),
                "newRole",
                rx.el.option(_("Choose a role"), value=""),
                rx.foreach(NewRoleState.new_roles, _option),
                value=NewRoleState.new,
                on_change=NewRoleState.set_new,
                error=fault_of(NewRoleState, "newRole"),
            ),
            class_name="grid grid-cols-1 gap-4 sm:grid-cols-2",
        ),
        rx.el.div(
            button(_("Look at what changes"), icon="eye", busy=NewRoleState.looking, on_click=NewRoleState.look),
            button(_("Close"), kind="quiet", on_click=NewRoleState.close),
            class_name="flex flex-wrap gap-2",
        ),
        rx.cond(NewRoleState.looked, _found()),
        class_name="grid grid-cols-1 gap-5",
    )


def _option(one: rx.vars.ObjectVar[RoleChoiceView]) -> rx.Component:
    return rx.el.option(one.label, value=one.id, disabled=~one.assignable)


def _found() -> rx.Component:
    return rx.el.div(
        rx.el.p(NewRoleState.summary),
        rx.cond(
            NewRoleState.rules,
            rx.el.div(
                rx.el.h3(_("Rules that give it from then on"), class_name="font-semibold"),
                rx.el.ul(
                    rx.foreach(NewRoleState.rules, lambda name: rx.el.li(name, class_name="break-words")),
                    class_name="mt-1 list-inside list-disc text-sm",
                ),
                button(
                    _("Replace the role"),
                    kind="primary",
                    icon="replace",
                    busy=NewRoleState.working,
                    class_name="mt-3",
                    on_click=NewRoleState.ask,
                ),
            ),
        ),
        rx.cond(
            NewRoleState.left,
            rx.el.div(
                rx.el.h3(_("What stays as it is"), class_name="font-semibold"),
                rx.el.ul(rx.foreach(NewRoleState.left, _left), class_name="mt-1 text-sm"),
            ),
        ),
        class_name="grid grid-cols-1 gap-4 border-t hairline pt-5",
        role="status",
    )


def _left(rule: rx.vars.ObjectVar[LeftRule]) -> rx.Component:
    return rx.el.li(
        rx.el.span(rule.name, class_name="font-medium"), " ", rx.el.span(rule.why, class_name="muted"), key=rule.id
    )


def _question() -> rx.Component:
    return confirm(
        is_open=NewRoleState.asked != "",
        on_open_change=NewRoleState.close_dialog,
        title=_("Replace the role?"),
        text=_(
            "Members get the new role before they lose the old one. Removals follow each rule's grace time and the "
            "breaker."
        ),
        body=rx.el.div(impact_panel(), class_name="mt-5"),
        cancel=button(_("Leave it as it is"), kind="quiet", on_click=NewRoleState.close_dialog(False)),
        action=button(_("Replace the role"), kind="primary", on_click=NewRoleState.confirm),
    )
