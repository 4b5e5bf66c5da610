"""The modal dialog that confirms an action, and the one that asks before unsaved changes are lost."""

import reflex as rx
from reflex_base.utils.imports import ImportDict
from reflex_components_radix.primitives.dialog import DialogContent, dialog

from components.ui.button import button
from locales import _


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

    `body` is shown between the text and the buttons. The buttons stay where they are when it grows: the lower edge of
    the dialog does not move, and what has no room is scrolled behind them.
    """
    return dialog.root(
        dialog.portal(
            dialog.overlay(class_name="fixed inset-0 z-40 bg-black/60"),
            _Content.create(
                dialog.title(title, class_name="display text-xl font-semibold"),
                dialog.description(text, class_name="muted mt-2"),
                body or rx.fragment(),
                rx.el.div(
                    cancel,
                    action,
                    class_name="sticky bottom-0 -mx-6 mt-3 grid grid-cols-1 gap-2 rounded-b-box bg-base-100 px-6 pb-6 "
                    "pt-3 sm:flex sm:justify-end sm:gap-3",
                ),
                class_name="dialog surface fixed left-1/2 z-50 w-[min(30rem,calc(100vw-2rem))] -translate-x-1/2 "
                "overflow-y-auto px-6 pt-6",
            ),
        ),
        open=is_open,
        on_open_change=on_open_change,
    )


class _LeaveQuestion(rx.Fragment):
    """Contains the dialog, and watches the ways off the screen: links, Back, loading again, closing the tab."""

    changed: rx.Var[bool]
    saved: rx.Var[bool]
    late: rx.Var[list[str]]

    def add_imports(self) -> ImportDict:
        """Return the import of its code."""
        return {"$/public/screens/leave_question.js": ["useLeaveQuestion"]}

    def add_hooks(self) -> list[str | rx.Var[str]]:
        """Return the question's state."""
        return [f"const leaving = useLeaveQuestion({self.changed!s}, {self.saved!s}, {self.late!s});"]

    def _exclude_props(self) -> list[str]:
        return ["changed", "saved", "late"]


@rx.memo
def leave_question(*, changed: rx.Var[bool], saved: rx.Var[bool], late: rx.Var[list[str]]) -> rx.Component:
    """Return the question; `late` are the ids of entries that the state learns only when they lose the focus."""
    return _LeaveQuestion.create(
        confirm(
            is_open=rx.Var("leaving.asks", _var_type=bool),
            on_open_change=_call("leaving.stay"),
            title=_("Leave without saving?"),
            text=_("What you have changed here is not saved yet, and would be lost."),
            cancel=button(_("Keep editing"), kind="quiet", on_click=_call("leaving.stay")),
            action=button(_("Leave without saving"), kind="danger", on_click=_call("leaving.leave")),
        ),
        changed=changed,
        saved=saved,
        late=late,
    )


def _call(function: str) -> rx.Var[rx.EventChain]:
    return rx.Var(function, _var_type=rx.EventChain)
