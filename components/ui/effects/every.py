"""Calls a handler periodically while a screen is open."""

import reflex as rx


class _Every(rx.Component):
    """An invisible component that calls its handler after each period; with `seen_only` only in a visible tab."""

    library = "$/public/screens/every.js"
    tag = "Every"

    milliseconds: rx.Var[int]
    seen_only: rx.Var[bool]

    on_turn: rx.EventHandler[rx.event.no_args_event_spec]


def every(seconds: float, on_turn: rx.event.EventType[()], *, seen_only: bool = False) -> rx.Component:
    """Call a handler every `seconds`, first after one period.

    `seen_only` is for work that only refreshes the display: it leaves out a call while the tab is hidden, or just after
    the pointer moved over a control, which would move away from under it.
    """
    return _Every.create(milliseconds=round(seconds * 1000), seen_only=seen_only, on_turn=on_turn)
