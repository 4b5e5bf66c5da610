"""The slash commands and the panel's buttons. Each module here has one cog, as `cog`."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator

from nextcord.ext import commands

from bot.interaction.presses import Presses


def cogs(presses: Presses) -> Iterator[commands.Cog]:
    """Yield the cog of every module in this package; each registers its buttons with `presses`."""
    for found in pkgutil.iter_modules(__path__):
        # A cog without buttons takes them too: the library's own class ignores what it is given.
        cog: Callable[[Presses], commands.Cog] = importlib.import_module(f"{__name__}.{found.name}").cog
        yield cog(presses)
