"""/setup: make or repair the verification channel."""

import nextcord
from nextcord.ext import commands

from bot.interaction.answering import InteractionContext, answer
from bot.interaction.delivery import Interaction
from bot.interaction.localizations import named
from bot.messages.reply import Reply, lines
from gateways import gateways
from locales import N_, NP_, _
from models import transaction
from services.guilds import verification_channel


class ChannelSetup(commands.Cog):
    """The command that makes the verification channel."""

    @nextcord.slash_command(
        # Translators: the name of a command: small letters, no spaces. It makes the verification channel.
        **named(NP_("command", "setup"), N_("Make or repair the verification channel (needs Manage Server)")),
        default_member_permissions=nextcord.Permissions(manage_guild=True),
    )
    async def setup(self, interaction: Interaction) -> None:
        """Make or repair the channel, after a live check of the person's permission."""
        await answer(interaction, self._setup)

    async def _setup(self, context: InteractionContext) -> Reply:
        member = await context.find_member()
        async with transaction() as db:
            made = await verification_channel.set_up(db, gateways(), member.actor, context.guild_id)
        done = lines(made.done) if made.done else _("Everything was right already.")
        return Reply(
            _("The verification channel is ready"), f"<#{made.channel_id}> (#{made.channel_name})\n{done}", "good"
        )


cog = ChannelSetup
