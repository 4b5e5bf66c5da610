"""The modal dialog that confirms an action."""

import reflex as rx
from reflex_components_radix.primitives.dialog import DialogContent, dialog


class _Content(DialogContent):
    """The dialog's content, which gives the focus back to the control that opened it."""

    library = "$/public/screens/dialog.js"
    tag = "DialogContent"
    alias = ""


def confirm(
    *,
    is_open: rx.Var[bool] | bool,
    on_open_change: rx.event.EventType[bool],
    title: str | rx.Var[str],
    text: str | rx.Var[str],
    action: rx.Component,
    cancel: rx.Component,
    body: rx.Component | None = None,
) -> rx.Component:
    """Return a dialog with two buttons. Escape and a press outside cancel; focus stays inside and returns afterwards.

    `body` is shown between the text and the buttons.
    """
    return dialog.root(
        dialog.portal(
            dialog.overlay(class_name="fixed inset-0 z-40 bg-black/60"),
            _Content.create(
                dialog.title(title, class_name="display text-xl font-semibold"),
                dialog.description(text, class_name="muted mt-2"),
                body or rx.fragment(),
                rx.el.div(cancel, action, class_name="mt-6 grid grid-cols-1 gap-2 sm:flex sm:justify-end sm:gap-3"),
                class_name=(
                    "surface fixed left-1/2 top-1/2 z-50 w-[min(30rem,calc(100vw-2rem))] max-h-[90dvh] overflow-y-auto "
                    "-translate-x-1/2 -translate-y-1/2 p-6"
                ),
            ),
        ),
        open=is_open,
        on_open_change=on_open_change,
    )
