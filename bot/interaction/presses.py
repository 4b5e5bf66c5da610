"""The cog that hears of pressed buttons, chosen options and sent forms, also of those from before a restart.

What a component is for stands in its name: `holdfast:<verb>:<argument>:…`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import nextcord
from nextcord.ext import commands

from bot.interaction.forms import filled_in

PREFIX = "holdfast"
Pressed = Callable[[nextcord.Interaction[nextcord.Client], list[str]], Awaitable[None]]
"""Called with the arguments of the name, and after them what was chosen."""
Sent = Callable[[nextcord.Interaction[nextcord.Client], list[str], Mapping[str, str]], Awaitable[None]]
"""Called with the arguments of the name and what was filled in."""


class Presses(commands.Cog):
    """Passes each press on to whoever answers for its verb."""

    def __init__(self) -> None:
        self.pressed: dict[str, Pressed] = {}
        self.sent: dict[str, Sent] = {}

    @commands.Cog.listener()
    async def on_interaction(self, interaction: nextcord.Interaction[nextcord.Client]) -> None:
        """Somebody did something with a component or a form."""
        data = cast("Mapping[str, Any]", interaction.data or {})
        prefix, *rest = str(data.get("custom_id", "")).split(":")
        if prefix != PREFIX or not rest:
            return
        verb, *arguments = rest
        if interaction.type is nextcord.InteractionType.component and verb in self.pressed:
            chosen = list(map(str, cast("list[Any]", data.get("values") or [])))
            await self.pressed[verb](interaction, [*arguments, *chosen])
        elif interaction.type is nextcord.InteractionType.modal_submit and verb in self.sent:
            await self.sent[verb](interaction, arguments, filled_in(data))
