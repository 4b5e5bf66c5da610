"""The banner that marks sandbox mode."""

import reflex as rx

from locales import _
from settings import settings

CONSOLE_PATH = "/sandbox-console"
"""Leads to the console on any port (app/http/html_pages.py), so that one build fits every port."""


def sandbox_banner() -> rx.Component:
    """Return the banner; shown in sandbox mode only."""
    if not settings().sandbox:
        return rx.fragment()
    return rx.el.div(
        rx.el.p(
            _("Sandbox: nothing here is real."),
            " ",
            rx.el.a(
                _("Open console"),
                href=CONSOLE_PATH,
                target="_blank",
                rel="noopener",
                reload_document=True,
                class_name="font-semibold underline underline-offset-2",
            ),
        ),
        class_name="around-content bg-accent px-4 py-1.5 text-center text-sm text-accent-content",
        role="note",
    )
