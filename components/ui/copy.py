"""Text with a copy button."""

from typing import Any

import reflex as rx

from components.ui.button import button
from components.ui.effects.texts import about
from locales import _
from state.core.clipboard import CopyState


def copyable(text: rx.Var[str] | str, label: str = "", *, what: str = "") -> rx.Component:
    """Return a line of monospaced text with a copy button, which reads 'Copied!' for two seconds.

    `what` is read aloud with the button where there are several.
    """
    copied = CopyState.copied == text
    read_aloud: dict[str, Any] = (
        {"aria_label": rx.cond(copied, _("Copied!"), about(label or _("Copy"), what))} if what else {}
    )
    return rx.el.div(
        rx.el.code(text, class_name="code min-w-0 flex-1 break-all text-[0.8rem] sm:text-sm"),
        button(
            rx.cond(copied, _("Copied!"), label or _("Copy")),
            kind="quiet",
            class_name="btn-sm px-2",
            on_click=[rx.set_clipboard(text), CopyState.mark(text)],
            aria_live="polite",
            **read_aloud,
        ),
        class_name="flex items-center gap-2 rounded-field bg-base-200 py-1.5 ps-2.5 pe-1",
    )


def shown_once(
    text: rx.Var[str] | str, said: str, copy: str, copied: str, on_copied: rx.event.EventType[()]
) -> rx.Component:
    """Return a secret that is shown once, to copy; the button `copied` says that it can be hidden."""
    return rx.el.div(
        rx.el.p(said, class_name="mb-2 font-medium"),
        copyable(text, copy),
        button(copied, kind="quiet", class_name="btn-sm -ms-3 mt-2", on_click=on_copied),
        class_name="mb-5 rounded-box border border-warning/50 bg-warning/12 p-4",
        role="status",
    )
