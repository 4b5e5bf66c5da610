"""Calls a handler when a value changes."""

import reflex as rx


class _Changed(rx.Component):
    """An invisible component that calls its handler when it appears and whenever its value changes."""

    library = "$/public/screens/changed.js"
    tag = "Changed"

    value: rx.Var[str]

    on_turn: rx.EventHandler[rx.event.no_args_event_spec]


def when_changed(value: str | rx.Var[str], on_turn: rx.event.EventType[()]) -> rx.Component:
    """Call a handler whenever the value changes, and once when it first appears."""
    return _Changed.create(value=value, on_turn=on_turn)
