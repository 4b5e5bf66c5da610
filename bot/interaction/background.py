"""Cogs that do something on their own, and what has to end before the bot has."""

import asyncio
from collections.abc import Collection

from nextcord.ext import commands


class Busy(commands.Cog):
    """A cog with tasks that go on unasked; they are cancelled with the bot, which waits until they have ended."""

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Those that are under way."""
        raise NotImplementedError

    def cog_unload(self) -> None:
        """Stop with the bot."""
        for task in self.tasks():
            task.cancel()
