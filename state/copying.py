"""Which text was copied a moment ago."""

import asyncio

import reflex as rx

from state.gate import background, public
from state.timing import COPIED_SECONDS


class CopyState(rx.State):
    """The text whose button says that it was copied."""

    copied: str = ""

    @background
    @public
    async def mark(self, text: str) -> None:
        """Confirm a copy for two seconds."""
        async with self:
            self.copied = text
        await asyncio.sleep(COPIED_SECONDS)
        async with self:
            if self.copied == text:
                self.copied = ""
