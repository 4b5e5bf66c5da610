"""The card below a server's rules with the protected roles."""

import reflex as rx

from components.pages.server.tab_outlines import once_loaded
from components.ui.badge import role_mark
from components.ui.button import button
from components.ui.card import card_title
from components.ui.dialog import confirm
from components.ui.effects.texts import filled
from components.ui.field import select_field
from components.ui.placeholders import skeleton
from locales import _
from settings import settings
from state.dashboard.server_page import ServerPageState
from state.server.protected_roles import ProtectedRolesState, ProtectedRoleView
from state.server.rules import RulesState


def protected_roles() -> rx.Component:
    """Return the protected roles and a choice of one more; nothing if there is no role to protect."""
    count = rx.Var.create(ProtectedRolesState.rows).length() + rx.Var.create(ProtectedRolesState.offered).length()
    return rx.cond(
        (ProtectedRolesState.shown_for == ServerPageState.server_id) & (count > 0),
        rx.fragment(
            rx.el.section(
                card_title(
                    _("Protected roles"),
                    _(
                        "{product} never takes a protected role from anyone: not after a sale, not when a rule is "
                        "deleted. It still gives the role. Only members who delete their data lose it."
                    ).format(product=settings().product_name),
                ),
                rx.cond(
                    ProtectedRolesState.rows,
                    rx.el.ul(rx.foreach(ProtectedRolesState.rows, _role), class_name="divide-y divide-base-300"),
                    rx.el.p(_("No role is protected."), class_name="muted"),
                ),
                rx.cond(ProtectedRolesState.offered, _choice()),
                class_name="surface mt-8 p-5 sm:p-6",
            ),
            _question(),
        ),
        # If the rules could not be read, their own part of the tab says why.
        rx.cond(
            (rx.Var.create(RulesState.rows).length() > 0) & (RulesState.shown_for == ServerPageState.server_id),
            rx.el.div(
                once_loaded(ProtectedRolesState, ProtectedRolesState.load, rx.fragment(), skeleton("h-48")),
                class_name="mt-4",
            ),
        ),
    )


def _role(role: rx.vars.ObjectVar[ProtectedRoleView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            role_mark(role.name, role.color),
            rx.cond(role.since != "", rx.el.p(role.since, class_name="muted text-sm")),
            class_name="min-w-0 flex-1 break-words",
        ),
        button(
            _("End protection"),
            kind="quiet",
            icon="shield-off",
            class_name="btn-sm",
            disabled=ProtectedRolesState.working,
            on_click=ProtectedRolesState.ask(role.id),
            aria_label=filled(_("End the protection of {name}"), name=role.name),
        ),
        key=role.id,
        class_name="flex flex-wrap items-center gap-x-4 gap-y-2 py-3",
    )


def _choice() -> rx.Component:
    return rx.el.div(
        rx.el.div(
            select_field(
                _("Protect a role"),
                "protected-role",
                rx.el.option(_("Choose a role"), value=""),
                rx.foreach(ProtectedRolesState.offered, lambda role: rx.el.option(role.name, value=role.id)),
                value=ProtectedRolesState.chosen,
                on_change=ProtectedRolesState.choose,
            ),
            class_name="min-w-0 flex-1 basis-56",
        ),
        button(
            _("Protect"),
            icon="shield",
            busy=ProtectedRolesState.working,
            disabled=ProtectedRolesState.chosen == "",
            on_click=ProtectedRolesState.protect,
        ),
        class_name="mt-4 flex max-w-xl flex-wrap items-end gap-3",
    )


def _question() -> rx.Component:
    return confirm(
        is_open=ProtectedRolesState.asked != "",
        on_open_change=ProtectedRolesState.close_dialog,
        title=filled(_("End the protection of “{name}”?"), name=ProtectedRolesState.asked_name),
        text=_(
            "The rules decide again. Members without a rule for the role lose it, at once or after the grace time "
            "of its rules."
        ),
        cancel=button(_("Keep it protected"), kind="quiet", on_click=ProtectedRolesState.close_dialog(False)),
        action=button(_("End protection"), kind="danger", on_click=ProtectedRolesState.end),
    )
