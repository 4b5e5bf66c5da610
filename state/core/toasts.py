"""The toast; a page shows one at a time."""

import reflex as rx

from state.core.gate import public


class ToastState(rx.State):
    """The current toast; a new one replaces it."""

    number: int = 0
    title: str = ""
    text: str = ""
    destructive: bool = False

    def _say(self, title: str, text: str = "", *, destructive: bool = False) -> None:
        self.number += 1
        self.title, self.text, self.destructive = title, text, destructive

    @public
    def show(self, title: str, text: str, destructive: bool) -> None:
        """Show a toast; called by events of other states and on errors."""
        self._say(title[:200], text[:2000], destructive=destructive)

    @public
    def dismiss(self, number: int) -> None:
        """Hide the toast with this number; a newer one stays."""
        if number == self.number:
            self.title = self.text = ""


async def say(state: rx.State, title: str, text: str = "", *, destructive: bool = False) -> None:
    """Show a toast from a handler that holds the state's lock."""
    toasts = await state.get_state(ToastState)
    toasts._say(title, text, destructive=destructive)


async def refuse(state: rx.State, title: str, text: str = "") -> None:
    """Show an error toast."""
    await say(state, title, text, destructive=True)
