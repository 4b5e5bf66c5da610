"""Which text was copied a moment ago."""

import asyncio

import reflex as rx

from state.gate import background, public

CONFIRMATION_SECONDS = 2.0


class CopyState(rx.State):
    """The text whose button says that it was copied."""

    copied: str = ""

    @background
    @public
    async def mark(self, text: str) -> None:
        """Confirm a copy for two seconds."""
        async with self:
            self.copied = text
        await asyncio.sleep(CONFIRMATION_SECONDS)
        async with self:
            if self.copied == text:
                self.copied = ""
