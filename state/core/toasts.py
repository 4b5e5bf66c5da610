"""The one toast that a page shows at a time."""

import reflex as rx

from state.core.gate import public


class ToastState(rx.State):
    """What the toast says; a new one takes the place of the one before."""

    number: int = 0
    title: str = ""
    text: str = ""
    destructive: bool = False

    def _say(self, title: str, text: str = "", *, destructive: bool = False) -> None:
        self.number += 1
        self.title, self.text, self.destructive = title, text, destructive

    @public
    def show(self, title: str, text: str, destructive: bool) -> None:
        """Show a toast; events from other states and the error path come here."""
        self._say(title[:200], text[:2000], destructive=destructive)

    @public
    def dismiss(self, number: int) -> None:
        """The toast's time is over, or somebody closed it; a newer one stays."""
        if number == self.number:
            self.title = self.text = ""


async def say(state: rx.State, title: str, text: str = "", *, destructive: bool = False) -> None:
    """Show a toast from any handler that holds the state's lock."""
    toasts = await state.get_state(ToastState)
    toasts._say(title, text, destructive=destructive)


async def refuse(state: rx.State, title: str, text: str = "") -> None:
    """Show a toast in the manner of a failure."""
    await say(state, title, text, destructive=True)
