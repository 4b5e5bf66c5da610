"""Leads to the field that a form refused, or to the first field of what a button has added to it."""

import reflex as rx


class _RefusedField(rx.Component):
    """Shows nothing; gives the focus to the control with the id or name `field` whenever `turn` changes."""

    library = "$/public/screens/focus.js"
    tag = "RefusedField"

    turn: rx.Var[int]
    field: rx.Var[str]


class _NewField(_RefusedField):
    """Shows nothing; gives the focus to the control with the id `field` whenever `turn` changes after the beginning."""

    tag = "NewField"


def refused_field(turn: rx.Var[int] | int, field: rx.Var[str] | str) -> rx.Component:
    """Return what focuses the control with the id or name `field` at each new `turn`.

    The control is shown in the middle of the window, and marked as invalid until `field` is empty again.
    """
    return _RefusedField.create(turn=turn, field=field)


def new_field(turn: rx.Var[int] | int, field: rx.Var[str] | str) -> rx.Component:
    """Return what focuses the control with the id `field` at each new `turn`, unless the focus has left the buttons."""
    return _NewField.create(turn=turn, field=field)
