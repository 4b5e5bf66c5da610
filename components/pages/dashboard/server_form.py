"""The form that adds a server by hand."""

import reflex as rx

from components.layout.frame import member_frame, page_head
from components.ui.button import button, link_button
from components.ui.card import card, card_title
from components.ui.field import field, text_area, text_input
from settings import settings
from state.dashboard.server_form import ServerFormState

NEXT_STEPS = (
    f"Invite {settings().bot_name} to the server",
    "Move its role above the roles it will give",
    "Create your first verification rule",
    "Tell your members where to verify",
)


def server_form() -> rx.Component:
    """Return the form and the list of next steps."""
    return member_frame(
        page_head("Add a server by hand", "Enter the ID of a Discord server that you own or administer."),
        rx.el.div(
            card(_form()), _next_steps(), class_name="grid grid-cols-1 items-start gap-6 md:grid-cols-[1.6fr_1fr]"
        ),
    )


def _form() -> rx.Component:
    return rx.el.form(
        field(
            "Discord Server ID *",
            text_input("discordServerId", placeholder="123456789012345678", input_mode="numeric"),
            name="discordServerId",
            hint="In Discord: right-click the server, Copy Server ID (with developer mode on).",
        ),
        field("Server Name *", text_input("serverName", placeholder="My NFT community"), name="serverName"),
        field(
            "Server Icon URL",
            text_input("serverIcon", placeholder="https://cdn.discordapp.com/icons/…"),
            name="serverIcon",
        ),
        field("Description", text_area("description"), name="description"),
        rx.el.div(
            link_button("Cancel", "/dashboard", kind="quiet"),
            button(
                "Create Server",
                kind="primary",
                type="submit",
                busy=ServerFormState.pending,
                busy_label="Creating...",
            ),
            class_name="flex flex-wrap justify-end gap-3",
        ),
        on_submit=ServerFormState.create,
        class_name="flex flex-col gap-5",
    )


def _next_steps() -> rx.Component:
    return card(
        card_title("Next Steps"),
        rx.el.ol(*[rx.el.li(step) for step in NEXT_STEPS], class_name="muted list-decimal space-y-2 pl-5"),
    )
