"""The toast: one at a time, for a few seconds, or longer while the pointer or the keyboard focus is on it."""

import reflex as rx

from components.ui.tooltip import tooltip
from locales import _
from state.core.timing import (
    TOAST_HOTKEY,
    TOAST_MILLISECONDS,
    TOAST_REMOVED_MILLISECONDS,
    TOAST_SWIPE_PIXELS,
    TOAST_WIDTH_PIXELS,
)
from state.core.toasts import ToastState

_LIBRARY = "$/public/screens/toast.js"


class _ToastPlace(rx.Component):
    """The region of toasts; its hotkey moves the focus there."""

    library = _LIBRARY
    tag = "ToastPlace"

    hotkey: rx.Var[str]


class _Toast(rx.Component):
    """One toast with its own timer; a swipe, Escape or anything marked `data-close` closes it."""

    library = _LIBRARY
    tag = "Toast"

    life: rx.Var[int]
    longest: rx.Var[int]
    swipe: rx.Var[int]

    on_gone: rx.EventHandler[rx.event.no_args_event_spec]


def toaster() -> rx.Component:
    """Return the toast region of every page. Screen readers announce errors at once, other toasts in a pause."""
    said = ToastState.title != ""
    return _ToastPlace.create(
        rx.el.div(rx.cond(said & ~ToastState.destructive, _toast()), aria_live="polite"),
        rx.el.div(rx.cond(said & ToastState.destructive, _toast()), aria_live="assertive"),
        hotkey=TOAST_HOTKEY,
        class_name="toast-place fixed inset-x-4 bottom-4 z-[60] mx-auto w-auto sm:inset-s-auto sm:inset-e-6 sm:mx-0",
        style={"max_width": f"{TOAST_WIDTH_PIXELS}px"},
        custom_attrs={"aria-label": _("Notifications ({key})").format(key=TOAST_HOTKEY)},
    )


def _toast() -> rx.Component:
    return _Toast.create(
        rx.el.span(
            rx.cond(
                ToastState.destructive,
                rx.icon("circle-alert", size=20, class_name="text-error"),
                rx.icon("circle-check", size=20, class_name="text-primary"),
            ),
            class_name="mt-0.5 shrink-0",
            aria_hidden="true",
        ),
        rx.el.div(
            rx.el.p(ToastState.title, class_name="break-words font-semibold"),
            rx.cond(ToastState.text != "", rx.el.p(ToastState.text, class_name="muted break-words text-sm")),
            class_name="min-w-0 flex-1",
        ),
        tooltip(
            rx.el.button(
                rx.icon("x", size=18, aria_hidden="true"),
                type="button",
                aria_label=_("Close"),
                class_name="btn btn-ghost btn-sm btn-square",
                custom_attrs={"data-close": "true"},
            ),
            _("Close"),
        ),
        key=ToastState.number,
        life=TOAST_MILLISECONDS,
        longest=TOAST_REMOVED_MILLISECONDS,
        swipe=TOAST_SWIPE_PIXELS,
        on_gone=ToastState.dismiss(ToastState.number),
        class_name=rx.cond(
            ToastState.destructive,
            "toast-in surface flex items-start gap-3 border-s-4 border-s-error p-4",
            "toast-in surface flex items-start gap-3 border-s-4 border-s-primary p-4",
        ),
    )
