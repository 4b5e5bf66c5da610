"""Badges: short words for a state or a kind."""

from typing import Literal

import reflex as rx

from components.ui.effects.texts import filled
from locales import _

Tone = Literal["neutral", "good", "warning", "bad", "info"]

_TONES: dict[str, str] = {
    "neutral": "bg-base-200 text-base-content",
    "good": "bg-success/12 text-success",
    "warning": "bg-warning/12 text-warning",
    "bad": "bg-error/12 text-error",
    "info": "bg-info/12 text-info",
}
_STATES = {
    "good": ("circle-check", "text-success"),
    "warning": ("triangle-alert", "text-warning"),
    "bad": ("octagon-alert", "text-error"),
    "off": ("circle-minus", "muted"),
}


def badge(text: str | rx.Var[str], tone: Tone = "neutral") -> rx.Component:
    """Return a word in a tone; the word alone carries the meaning."""
    return rx.el.span(
        text, class_name=f"inline-flex items-center rounded-full px-2.5 py-0.5 text-xs font-semibold {_TONES[tone]}"
    )


def state_icon(state: rx.Var[str] | str, size: int) -> rx.Component:
    """Return the icon of a state: good, warning, bad, off, or any other for unknown. A word beside it says the same."""
    icons = [
        (name, rx.icon(icon, size=size, class_name=tone, aria_hidden="true")) for name, (icon, tone) in _STATES.items()
    ]
    unknown = rx.icon("circle-help", size=size, class_name="muted", aria_hidden="true")
    return rx.el.span(rx.match(state, *icons, unknown), class_name="inline-flex")


def role_mark(name: str | rx.Var[str], color: str | rx.Var[str]) -> rx.Component:
    """Return a Discord role: a dot in its colour and its name."""
    return rx.el.span(
        role_dot(color),
        rx.el.bdi(name, class_name="any-script min-w-0 wrap-anywhere"),
        class_name="inline-flex min-w-0 max-w-full items-center gap-2 text-start font-medium",
    )


def role_dot(color: str | rx.Var[str]) -> rx.Component:
    """Return a role's colour, with a ring that makes it visible on any background."""
    return rx.el.span(
        class_name="inline-block size-3 shrink-0 rounded-full ring-2 ring-base-300",
        style={"background_color": color},
        aria_hidden="true",
    )


def chip(text: rx.Var[str], on_remove: rx.event.EventType[()]) -> rx.Component:
    """Return an entry of a list, with a button that removes it."""
    return rx.el.span(
        rx.el.span(text, class_name="max-w-48 truncate tabular-nums", title=text),
        rx.el.button(
            rx.icon("x", size=14, aria_hidden="true"),
            type="button",
            on_click=on_remove,
            aria_label=filled(_("Remove {name}"), name=text),
            title=_("Remove"),
            class_name="grid size-6 place-items-center rounded-full hover:bg-base-300",
        ),
        class_name="inline-flex items-center gap-1 rounded-full bg-base-200 py-0.5 ps-3 pe-1 text-sm font-medium",
    )
