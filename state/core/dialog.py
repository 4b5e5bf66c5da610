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
