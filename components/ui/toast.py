"""The toast: one at a time, five seconds, held while the pointer or the keyboard is on it."""

import reflex as rx

from state.toasts import ToastState


class _Lived(rx.el.Div):
    """A block that says when its animation has ended."""

    on_animation_end: rx.EventHandler[rx.event.no_args_event_spec]


def toaster() -> rx.Component:
    """The place where the toast shows. It is always in the page, so that screen readers hear what appears in it."""
    return rx.el.div(
        rx.cond(ToastState.title != "", _toast()),
        class_name="fixed inset-x-4 bottom-4 z-[60] mx-auto w-auto max-w-[420px] sm:left-auto sm:right-6 sm:mx-0",
        role="region",
        aria_label="Notifications",
        aria_live="polite",
    )


def _toast() -> rx.Component:
    close = ToastState.dismiss(ToastState.number)
    return _Lived.create(
        rx.el.span(
            class_name=rx.cond(
                ToastState.destructive,
                "w-1 shrink-0 self-stretch rounded-full bg-error",
                "w-1 shrink-0 self-stretch rounded-full bg-primary",
            ),
            aria_hidden="true",
        ),
        rx.el.div(
            rx.el.p(ToastState.title, class_name="font-semibold"),
            rx.cond(ToastState.text != "", rx.el.p(ToastState.text, class_name="muted break-words text-sm")),
            class_name="min-w-0 flex-1",
        ),
        rx.el.button(
            rx.icon("x", size=18, aria_hidden="true"),
            type="button",
            on_click=close,
            aria_label="Close",
            class_name="btn btn-ghost btn-sm btn-square",
        ),
        key=ToastState.number,
        role=rx.cond(ToastState.destructive, "alert", "status"),
        class_name="toast-life surface flex items-start gap-3 p-4",
        # Its life is a CSS animation (assets/holdfast.css), which hovering holds.
        on_animation_end=close,
        custom_attrs={"data-toast": "true"},
    )
