"""An admin's actions on one member: recheck, protect, see the log."""

import reflex as rx

from components.ui.button import button, link_button
from components.ui.effects.texts import filled
from locales import _
from state.dashboard.server_page import ServerPageState
from state.server.members import MemberRowView, MembersState


def member_actions(member: rx.vars.ObjectVar[MemberRowView]) -> rx.Component:
    """Return the buttons below a member's roles."""
    return rx.el.div(
        button(
            _("Check again"),
            icon="refresh-cw",
            class_name="btn-sm",
            busy=MembersState.checking == member.id,
            busy_label=_("Checking..."),
            disabled=MembersState.checking != "",
            on_click=MembersState.check(member.id),
            aria_label=filled(_("Check {name} again"), name=member.name),
        ),
        rx.cond(
            MembersState.why_of == member.id,
            button(
                rx.cond(MembersState.why_protected, _("End protection"), _("Protect")),
                kind="quiet",
                icon="shield",
                class_name="btn-sm",
                on_click=MembersState.protect(member.id, ~MembersState.why_protected),
                title=_("A protected member keeps every role, whatever the rules say."),
                aria_label=rx.cond(
                    MembersState.why_protected,
                    filled(_("End the protection of {name}"), name=member.name),
                    filled(_("Protect {name}: nothing is taken from them"), name=member.name),
                ),
            ),
        ),
        link_button(
            _("Activity"),
            f"{ServerPageState.config_url}&tab=activity&member={member.id}",
            kind="quiet",
            icon="history",
            class_name="btn-sm",
            aria_label=filled(_("Activity of {name}"), name=member.name),
        ),
        class_name="mt-4 flex flex-wrap gap-2",
    )
