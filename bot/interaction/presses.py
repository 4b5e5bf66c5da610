"""The cog that receives pressed buttons, chosen options and sent forms, also those from before a restart.

A component's custom id says what it does: `holdfast:<verb>:<argument>:…`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import nextcord
from nextcord.ext import commands

from bot.interaction.forms import filled_in

PREFIX = "holdfast"
Pressed = Callable[[nextcord.Interaction[nextcord.Client], list[str]], Awaitable[None]]
"""Called with the arguments of the custom id, and then the chosen values."""
Sent = Callable[[nextcord.Interaction[nextcord.Client], list[str], Mapping[str, str]], Awaitable[None]]
"""Called with the arguments of the custom id and the entered values."""


class Presses(commands.Cog):
    """The cog that passes each press to the handler of its verb."""

    def __init__(self) -> None:
        self.pressed: dict[str, Pressed] = {}
        self.sent: dict[str, Sent] = {}

    @commands.Cog.listener()
    async def on_interaction(self, interaction: nextcord.Interaction[nextcord.Client]) -> None:
        """Handle a press, a choice or a sent form."""
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
