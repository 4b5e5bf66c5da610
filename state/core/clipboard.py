"""The text that was copied last."""

import reflex as rx

from state.core.gate import background, public
from state.core.timing import COPIED_SECONDS
from state.core.watchers import Watcher


class CopyState(rx.State):
    """The text whose button reads "Copied!"."""

    copied: str = ""

    @background
    @public
    async def mark(self, text: str) -> None:
        """Confirm a copy for two seconds."""
        watcher = Watcher(self, None, "copied", every=COPIED_SECONDS)
        async with self:
            self.copied = text
        async for _ in watcher.looks():
            async with self:
                if self.copied == text:
                    self.copied = ""
