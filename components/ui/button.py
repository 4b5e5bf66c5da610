"""Buttons, links that look like them, and the bar of a long form's buttons."""

from collections.abc import Callable
from typing import Any, Literal

import reflex as rx

Kind = Literal["primary", "plain", "quiet", "danger"]

_KINDS: dict[str, str] = {
    "primary": "btn btn-primary",
    "plain": "btn btn-outline",
    "quiet": "btn btn-ghost",
    "danger": "btn btn-error",
}


def button(
    label: str | rx.Var[str],
    *,
    kind: Kind = "plain",
    icon: str | None = None,
    busy: rx.Var[bool] | bool | None = None,
    busy_label: str | None = None,
    disabled: rx.Var[bool] | bool = False,
    class_name: str = "",
    type: Literal["button", "submit"] = "button",
    **props: Any,
) -> rx.Component:
    """Return a button; while `busy` it is disabled and shows `busy_label` beside a spinner."""
    mark = [rx.icon(icon, size=18, aria_hidden="true")] if icon else []
    content: list[rx.Component | str | rx.Var[str]] = [*mark, label]
    if busy is None:
        inside = content
        blocked = disabled
    else:
        working = rx.fragment(spinner(), busy_label or label)
        inside = [rx.cond(busy, working, rx.fragment(*content))]
        blocked = busy | disabled if isinstance(disabled, rx.Var) else busy
    return rx.el.button(
        *inside, type=type, disabled=blocked, class_name=f"{_KINDS[kind]} {class_name}".strip(), **props
    )


def link_button(
    label: str | rx.Var[str],
    href: str | rx.Var[str],
    *,
    kind: Kind = "plain",
    icon: str | None = None,
    leaves_app: bool = False,
    class_name: str = "",
    **props: Any,
) -> rx.Component:
    """Return a link that looks like a button; `leaves_app` for paths that are not screens."""
    mark = [rx.icon(icon, size=18, aria_hidden="true")] if icon else []
    if leaves_app:
        props["reload_document"] = True
    return rx.el.a(*mark, label, href=href, class_name=f"{_KINDS[kind]} {class_name}".strip(), **props)


def action_bar(
    message: rx.Component | rx.Var[rx.Component], *buttons: rx.Component | rx.Var[rx.Component]
) -> rx.Component:
    """Return a long form's buttons at the window's lower edge, below a message: no late answer moves them."""
    return rx.el.div(
        rx.el.div(
            message,
            rx.el.div(*buttons, class_name="flex flex-wrap justify-end gap-3"),
            class_name="mx-auto w-full max-w-[45rem]",  # as wide as the form: its column without the padding
        ),
        class_name="action-bar",
    )


def page_buttons(
    back: str,
    on: str,
    turn: Callable[[int], rx.event.EventSpec],
    *,
    first: rx.Var[bool] | bool,
    last: rx.Var[bool] | bool,
) -> rx.Component:
    """Return the buttons that turn to the page before and to the next one; `turn` gets -1 or 1."""
    return rx.el.div(
        button(back, icon="chevron-left", disabled=first, on_click=turn(-1)),
        button(on, icon="chevron-right", disabled=last, on_click=turn(1)),
        class_name="flex flex-wrap gap-2",
    )


def spinner() -> rx.Component:
    """Return a spinner for running work; the text beside it says what runs."""
    return rx.el.span(class_name="loading loading-spinner loading-xs", aria_hidden="true")
