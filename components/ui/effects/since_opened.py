"""Hides what a screen showed when it was open before, until the state is about this visit."""

import reflex as rx


class _SinceOpened(rx.Component):
    """Shows its content once `turn` differs from when the screen was opened, or until then if `before`."""

    library = "$/public/screens/since_opened.js"
    tag = "SinceOpened"

    turn: rx.Var[int]
    before: rx.Var[bool]


def since_opened(
    turn: rx.Var[int] | int, content: rx.Component | rx.Var[rx.Component], outline: rx.Component
) -> tuple[rx.Component, rx.Component]:
    """Return the content, and the outline in its place until the state has changed `turn` for this visit.

    The browser keeps the state from the visit before, and shows it until the server has answered.
    """
    return (_SinceOpened.create(content, turn=turn, before=False), _SinceOpened.create(outline, turn=turn, before=True))
