"""Something that a screen does again and again while it is open."""

import reflex as rx


class _Every(rx.Component):
    """Shows nothing; calls its handler after each period, while the page is looked at where `seen_only` says so."""

    library = "$/public/screens/every.js"
    tag = "Every"

    milliseconds: rx.Var[int]
    seen_only: rx.Var[bool]

    on_turn: rx.EventHandler[rx.event.no_args_event_spec]


def every(seconds: float, on_turn: rx.event.EventType[()], *, seen_only: bool = False) -> rx.Component:
    """Calls a handler every so many seconds, for the first time after the first of them.

    With `seen_only` it rests while the tab is hidden: for what a person only wants to see, not to happen.
    """
    return _Every.create(milliseconds=round(seconds * 1000), seen_only=seen_only, on_turn=on_turn)
