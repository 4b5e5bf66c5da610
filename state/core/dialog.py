"""The dialog before an action."""

import reflex as rx

from state.core.gate import public


class Dialog(rx.State, mixin=True):
    """The state of a screen's dialog."""

    asked: str = ""
    """What the open dialog asks about; empty while none is open."""

    @public
    def close_dialog(self, is_open: bool) -> None:
        """Close the dialog."""
        if not is_open:
            self.asked = ""


class RowDialog(rx.State, mixin=True):
    """The state of a screen's dialog about one row of a list."""

    asked_id: int = 0
    """The id of the row that the open dialog asks about; 0 while none is open."""

    @public
    def close_dialog(self, is_open: bool) -> None:
        """Close the dialog."""
        if not is_open:
            self.asked_id = 0
