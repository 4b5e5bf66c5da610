"""What members' screens show when the session ends while they are open."""

import reflex as rx
from reflex.vars import FunctionStringVar

from components.layout.frame import visitor_frame
from components.layout.navigation import LOGIN_PATH
from components.ui.button import link_button
from components.ui.placeholders import empty
from locales import _


def ended_session(content: rx.Component) -> rx.Component:
    """Return the screen for a session that ended."""
    return visitor_frame(content, class_name="tide grid grid-cols-1 place-items-center px-4 py-16")


def log_in_again(icon: str, title: str, text: str, back: rx.Var[str] | None = None) -> rx.Component:
    """Return a card that says what the ended session means here, with a button to log in.

    `back` is a path to return to. The button then leads to Discord at once: on any page of ours in between, the tab's
    state would be reset.
    """
    target = "/login" if back is None else returning_to(back)
    return rx.el.section(
        empty(
            icon, title, text, link_button(_("Go to Login"), target, kind="primary", leaves_app=True), whole_screen=True
        ),
        class_name="surface w-full max-w-lg p-6",
        role="alert",  # it takes the place of what was being read
    )


def returning_to(path: rx.Var[str]) -> rx.Var[str]:
    """Return the address that begins a sign-in, which ends on a path of ours."""
    encoded = FunctionStringVar.create("encodeURIComponent").call(path).to(str)
    return f"{LOGIN_PATH}?return=" + encoded
