"""/help: list the commands."""

import nextcord
from nextcord.ext import commands

from bot.interaction.answering import InteractionContext, answer
from bot.interaction.delivery import Interaction
from bot.interaction.localizations import name_of, named
from bot.messages import sentences
from bot.messages.reply import Reply
from locales import N_, NP_, _

FIRST = ("verify", "why", "recheck", "rules", "wallets")
"""The commands in the order in which a new member needs them; others follow by name."""


class HelpCommand(commands.Cog):
    """The command that lists the others."""

    # Translators: the name of a command: small letters, no spaces.
    @nextcord.slash_command(**named(NP_("command", "help"), N_("What this bot does, and how to recognise it")))
    async def help(self, interaction: Interaction) -> None:
        """List the commands."""
        await answer(interaction, self._help)

    async def _help(self, context: InteractionContext) -> Reply:
        registered = context.interaction.client.get_all_application_commands()
        # Discord shows a command that needs a permission only to people who have it; here it is listed last.
        order = sorted(
            registered, key=lambda one: (one.default_member_permissions is not None, *_place(one.name or ""))
        )
        shown = [(name_of(one), _(one.description)) for one in order if one.name != "help"]
        return sentences.help_(str(context.interaction.application_id), shown)


def _place(name: str) -> tuple[int, str]:
    """Return the place of a command in the list."""
    return FIRST.index(name) if name in FIRST else len(FIRST), name


cog = HelpCommand
