"""Something that a screen does again and again while it is open."""

import reflex as rx


class _Every(rx.Component):
    """Shows nothing; calls its handler after each period."""

    library = "$/public/screens/every.js"
    tag = "Every"

    milliseconds: rx.Var[int]

    on_turn: rx.EventHandler[rx.event.no_args_event_spec]


def every(seconds: float, on_turn: rx.event.EventType[()]) -> rx.Component:
    """Calls a handler every so many seconds, for the first time after the first of them."""
    return _Every.create(milliseconds=round(seconds * 1000), on_turn=on_turn)
