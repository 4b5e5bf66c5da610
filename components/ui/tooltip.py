"""A word about a control whose meaning is not written on it, or why it cannot be used."""

import reflex as rx

from state.core.timing import TOOLTIP_DELAY_MILLISECONDS, TOOLTIP_SKIP_MILLISECONDS


class _Tooltip(rx.Component):
    """A box around a control that shows the words after a moment of rest, or at once for the keyboard."""

    library = "$/public/screens/tooltip.js"
    tag = "Tooltip"

    text: rx.Var[str]
    delay: rx.Var[int]
    skip: rx.Var[int]
    disabled: rx.Var[bool]


def tooltip(
    control: rx.Component,
    text: str | rx.Var[str],
    *,
    disabled: rx.Var[bool] | bool = False,
    class_name: str = "inline-grid",
) -> rx.Component:
    """The control with words about it. `disabled` says that it cannot be used now: the box then takes the focus."""
    return _Tooltip.create(
        control,
        text=text,
        delay=TOOLTIP_DELAY_MILLISECONDS,
        skip=TOOLTIP_SKIP_MILLISECONDS,
        disabled=disabled,
        class_name=f"{class_name} rounded-field",
    )
