"""The thin line above everything that says when nothing here is real."""

import reflex as rx

from settings import settings

CONSOLE_PATH = "/sandbox-console"
"""Leads to the console wherever it runs (app/http/documents.py), so that a build fits every port."""


def sandbox_banner() -> rx.Component:
    """Shown in sandbox mode only."""
    if not settings().sandbox:
        return rx.fragment()
    return rx.el.div(
        rx.el.p(
            "Sandbox: nothing here is real. ",
            rx.el.a(
                "Open console",
                href=CONSOLE_PATH,
                target="_blank",
                rel="noopener",
                reload_document=True,
                class_name="font-semibold underline underline-offset-2",
            ),
        ),
        class_name="bg-accent px-4 py-1.5 text-center text-sm text-accent-content",
        role="note",
    )
