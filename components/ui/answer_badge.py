"""Yes, no or unknown: an icon and a word, so that colour is not the only sign."""

import reflex as rx

from locales import _


def answer_badge(answer: rx.Var[str]) -> rx.Component:
    """Return an answer as an icon and a word."""
    return rx.el.span(
        rx.match(
            answer,
            ("yes", _mark("circle-check", "text-success", _("Yes"))),
            ("no", _mark("circle-x", "text-error", _("No"))),
            _mark("circle-help", "text-warning", _("Unknown")),
        ),
        class_name="inline-flex",
    )


def _mark(icon: str, color: str, word: str) -> rx.Component:
    return rx.el.span(
        rx.icon(icon, size=16, aria_hidden="true"),
        word,
        class_name=f"inline-flex items-center gap-1 text-sm font-semibold {color}",
    )
