"""The form that adds a server by hand."""

import reflex as rx

from components.layout.frame import member_frame, page_head
from components.ui.button import button, link_button
from components.ui.card import card, card_title
from components.ui.field import field, text_area, text_field
from locales import _
from settings import settings
from state.dashboard.server_form import ServerFormState

NEXT_STEPS = (
    _("Invite {bot} to the server").format(bot=settings().bot_name),
    _("Move its role above the roles it will give"),
    _("Create your first verification rule"),
    _("Tell your members where to verify"),
)


def server_form() -> rx.Component:
    """Return the form and the list of next steps."""
    return member_frame(
        page_head(_("Add a server by hand"), _("Enter the ID of a Discord server that you own or administer.")),
        rx.el.div(
            card(_form()), _next_steps(), class_name="grid grid-cols-1 items-start gap-6 md:grid-cols-[1.6fr_1fr]"
        ),
    )


def _form() -> rx.Component:
    return rx.el.form(
        text_field(
            _("Discord Server ID *"),
            "discordServerId",
            placeholder="123456789012345678",
            input_mode="numeric",
            hint=_("In Discord: right-click the server, Copy Server ID (with developer mode on)."),
        ),
        text_field(_("Server Name *"), "serverName", placeholder=_("My NFT community")),
        text_field(_("Server Icon URL"), "serverIcon", placeholder="https://cdn.discordapp.com/icons/…"),
        field(_("Description"), text_area("description")),
        rx.el.div(
            link_button(_("Cancel"), "/dashboard", kind="quiet"),
            button(
                _("Create Server"),
                kind="primary",
                type="submit",
                busy=ServerFormState.pending,
                busy_label=_("Creating..."),
            ),
            class_name="flex flex-wrap justify-end gap-3",
        ),
        on_submit=ServerFormState.create,
        class_name="flex flex-col gap-5",
    )


def _next_steps() -> rx.Component:
    return card(
        card_title(_("Next Steps")),
        rx.el.ol(*[rx.el.li(step) for step in NEXT_STEPS], class_name="muted list-decimal space-y-2 ps-5"),
    )
