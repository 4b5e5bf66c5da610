"""Cards, each for one subject."""

from typing import Any

import reflex as rx

from components.ui.placeholders import empty


def card(*children: rx.Component | str, class_name: str = "", **props: Any) -> rx.Component:
    """Return a raised surface with padding."""
    return rx.el.section(*children, class_name=f"surface p-5 sm:p-6 {class_name}".strip(), **props)


def empty_card(icon: str, title: str, text: str | rx.Var[str], action: rx.Component) -> rx.Component:
    """Return a card that says why there is nothing here and what to do."""
    return card(empty(icon, title, text, action))


def card_title(text: str | rx.Var[str], hint: str | rx.Var[str] = "") -> rx.Component:
    """Return a card's heading with a muted line below it."""
    below = [rx.el.p(hint, class_name="muted mt-1 text-sm")] if isinstance(hint, rx.Var) or hint else []
    return rx.el.div(rx.el.h2(text, class_name="text-lg font-semibold"), *below, class_name="mb-4")


def stat(label: str, value: rx.Var[int] | int, icon: str, hint: str | rx.Var[str]) -> rx.Component:
    """Return one number, its label, and what is counted."""
    return rx.el.div(
        rx.el.dt(
            label,
            rx.el.span(
                rx.icon(icon, size=20, aria_hidden="true"),
                class_name="grid size-10 place-items-center rounded-full bg-base-200 text-primary",
            ),
            class_name="muted flex items-start justify-between gap-4 text-sm",
        ),
        rx.el.dd(value, class_name="display -mt-3 text-3xl font-semibold tabular-nums"),
        rx.el.dd(hint, class_name="muted mt-1 text-sm"),
        class_name="surface p-5",
    )
