"""Tooltips: what a control means, or why it is disabled."""

import reflex as rx

from state.core.timing import TOOLTIP_DELAY_MILLISECONDS, TOOLTIP_SKIP_MILLISECONDS


class _Tooltip(rx.Component):
    """A box around a control that shows the text after a moment, or at once for the keyboard."""

    library = "$/public/screens/tooltip.js"
    tag = "Tooltip"

    text: rx.Var[str]
    delay: rx.Var[int]
    skip: rx.Var[int]
    disabled: rx.Var[bool]


def tooltip(control: rx.Component, text: str | rx.Var[str], *, disabled: rx.Var[bool] | bool = False) -> rx.Component:
    """Return the control with its tooltip. If it is `disabled`, the box takes the focus instead."""
    return _Tooltip.create(
        control,
        text=text,
        delay=TOOLTIP_DELAY_MILLISECONDS,
        skip=TOOLTIP_SKIP_MILLISECONDS,
        disabled=disabled,
        class_name="inline-grid rounded-field",
    )
