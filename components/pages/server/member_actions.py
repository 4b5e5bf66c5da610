"""An admin's actions on one member: recheck, protect, see the log."""

import reflex as rx

from components.ui.button import button, link_button
from state.dashboard.server_page import ServerPageState
from state.server.members import MemberRowView, MembersState


def member_actions(member: rx.vars.ObjectVar[MemberRowView]) -> rx.Component:
    """Return the buttons below a member's roles."""
    return rx.el.div(
        button(
            "Check again",
            icon="refresh-cw",
            class_name="btn-sm",
            busy=MembersState.checking == member.id,
            busy_label="Checking...",
            disabled=MembersState.checking != "",
            on_click=MembersState.check(member.id),
            aria_label=f"Check {member.name} again",
        ),
        rx.cond(
            MembersState.why_of == member.id,
            button(
                rx.cond(MembersState.why_protected, "End protection", "Protect"),
                kind="quiet",
                icon="shield",
                class_name="btn-sm",
                on_click=MembersState.protect(member.id, ~MembersState.why_protected),
                title="A protected member keeps every role, whatever the rules say.",
                aria_label=rx.cond(
                    MembersState.why_protected,
                    f"End the protection of {member.name}",
                    f"Protect {member.name}: nothing is taken from them",
                ),
            ),
        ),
        link_button(
            "Activity",
            f"{ServerPageState.config_url}&tab=activity&member={member.id}",
            kind="quiet",
            icon="history",
            class_name="btn-sm",
            aria_label=f"Activity of {member.name}",
        ),
        class_name="mt-4 flex flex-wrap gap-2",
    )
