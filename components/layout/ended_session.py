"""What members' screens show when the session ends while they are open."""

import reflex as rx

from components.layout.frame import visitor_frame
from components.ui.button import link_button
from components.ui.placeholders import empty
from locales import _


def ended_session(content: rx.Component) -> rx.Component:
    """Return the screen for a session that ended."""
    return visitor_frame(content, class_name="tide grid place-items-center px-4 py-16")


def log_in_again(icon: str, title: str, text: str) -> rx.Component:
    """Return a card that says what the ended session means here, with a button to log in."""
    return rx.el.section(
        empty(icon, title, text, link_button(_("Go to Login"), "/login", kind="primary", leaves_app=True)),
        class_name="surface w-full max-w-lg p-6",
    )
