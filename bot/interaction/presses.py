"""The cog that receives pressed buttons, chosen options and sent forms, also those from before a restart.

A component's custom id says what it does: `holdfast:<verb>:<argument>:…`.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import nextcord
from nextcord.ext import commands

from bot.interaction.answering import InteractionContext, answer
from bot.interaction.delivery import Interaction
from bot.interaction.forms import filled_in
from bot.messages.reply import Reply
from locales import _

PREFIX = "holdfast"
Pressed = Callable[[Interaction, list[str]], Awaitable[None]]
"""Called with the arguments of the custom id, and then the chosen values."""
Sent = Callable[[Interaction, list[str], Mapping[str, str]], Awaitable[None]]
"""Called with the arguments of the custom id and the entered values."""


class Presses(commands.Cog):
    """The cog that passes each press to the handler of its verb."""

    def __init__(self) -> None:
        self.pressed: dict[str, Pressed] = {}
        self.sent: dict[str, Sent] = {}
        self.arguments: dict[str, str] = {}
        """By verb, the pattern of its arguments with the colons between them; a verb without one takes any."""

    @commands.Cog.listener()
    async def on_interaction(self, interaction: Interaction) -> None:
        """Handle a press, a choice or a sent form."""
        data = cast("Mapping[str, Any]", interaction.data or {})
        prefix, *rest = str(data.get("custom_id", "")).split(":")
        if prefix != PREFIX:
            return
        verb, *arguments = rest or [""]
        is_form = interaction.type is nextcord.InteractionType.modal_submit
        fits = re.fullmatch(self.arguments.get(verb, ".*"), ":".join(arguments), re.DOTALL)
        if not fits or verb not in (self.sent if is_form else self.pressed):
            await answer(interaction, _unreadable)
        elif is_form:
            await self.sent[verb](interaction, arguments, filled_in(data))
        else:
            chosen = list(map(str, cast("list[Any]", data.get("values") or [])))
            await self.pressed[verb](interaction, [*arguments, *chosen])


async def _unreadable(_context: InteractionContext) -> Reply:
    """Answer a component that this version does not know: a message stays in Discord when the bot is updated."""
    text = _(
        "This message is from another version of the bot. Use the command again, or a button in the verification "
        "channel."
    )
    return Reply(_("That did not work"), text, "warning")
