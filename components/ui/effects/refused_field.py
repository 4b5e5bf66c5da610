"""Leads to the field that a form refused."""

import reflex as rx


class _RefusedField(rx.Component):
    """Shows nothing; gives the focus to the control with the id or name `field` whenever `turn` changes."""

    library = "$/public/screens/focus.js"
    tag = "RefusedField"

    turn: rx.Var[int]
    field: rx.Var[str]


def refused_field(turn: rx.Var[int] | int, field: rx.Var[str] | str) -> rx.Component:
    """Return what focuses the control with the id or name `field` at each new `turn`.

    The control is shown in the middle of the window, and marked as invalid until `field` is empty again.
    """
    return _RefusedField.create(turn=turn, field=field)
