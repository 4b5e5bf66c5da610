"""Cogs with background tasks, which have to end before the bot does."""

import asyncio
from abc import ABCMeta, abstractmethod
from collections.abc import Collection

from nextcord.ext import commands


class _AbstractCogMeta(commands.CogMeta, ABCMeta):
    """The library's metaclass for a cog with abstract methods."""


class BackgroundCog(commands.Cog, metaclass=_AbstractCogMeta):
    """A cog with background tasks, which are cancelled when the bot stops; the bot waits until they have ended."""

    @abstractmethod
    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Return the tasks that are running."""

    def take_leave(self) -> None:
        """Let the tasks tell people that they end; the bot still reaches Discord for a few seconds."""

    def cog_unload(self) -> None:
        """Cancel the tasks when the bot stops."""
        for task in self.tasks():
            task.cancel()
