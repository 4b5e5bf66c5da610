"""/setup, /forget and /help: make the channel, delete one's data, and list the commands."""

import nextcord
from nextcord.ext import commands

from bot.interaction.answering import InteractionContext, answer
from bot.interaction.localizations import name_of, named
from bot.interaction.presses import Presses
from bot.messages import words
from bot.messages.reply import Button, Reply, lines
from gateways import gateways
from locales import N_, NP_, _
from models import transaction
from services.accounts import sign_in
from services.guilds import channels
from services.privacy import preferences

Interaction = nextcord.Interaction[nextcord.Client]


class GeneralCommands(commands.Cog):
    """The commands that concern neither wallets nor roles."""

    def __init__(self, presses: Presses) -> None:
        presses.pressed |= {"forget": self.forget_now}

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
            made = await channels.set_up(db, gateways(), member.actor, context.guild_id)
        done = lines(made.done) if made.done else _("Everything was right already.")
        return Reply(
            _("The verification channel is ready"), f"<#{made.channel_id}> (#{made.channel_name})\n{done}", "good"
        )

    # Translators: the name of a command: small letters, no spaces. It deletes what we know about a person.
    @nextcord.slash_command(**named(NP_("command", "forget"), N_("Delete everything about you, after a question")))
    async def forget(self, interaction: Interaction) -> None:
        """Say what deleting the person's data does."""
        await answer(interaction, self._ask_forget)

    async def _ask_forget(self, context: InteractionContext) -> Reply:
        member = await context.find_member()
        async with transaction() as db:
            roles = await preferences.consequences(db, member.actor)
        text = _(
            "Your wallets, how they were verified, your choices, your sessions on the dashboard and what Discord "
            "granted us are deleted at once, on every server, and the log calls you by a pseudonym. This cannot be "
            "undone."
        )
        buttons = (
            Button("holdfast:forget:yes", _("Forget me"), nextcord.ButtonStyle.danger),
            Button("holdfast:forget:no", _("Keep everything")),
        )
        text = f"{text}\n\n{words.ending(roles)}"
        return Reply(_("Delete everything about you?"), text, "bad", buttons=buttons)

    async def forget_now(self, interaction: Interaction, arguments: list[str]) -> None:
        """Delete the person's data if they confirm it."""
        await answer(interaction, self._forget if arguments == ["yes"] else self._keep)

    async def _keep(self, context: InteractionContext) -> Reply:
        return Reply(_("Nothing was deleted"), _("Everything stays as it is."), "good")

    async def _forget(self, context: InteractionContext) -> Reply:
        member = await context.find_member()
        async with transaction() as db:
            gone = await preferences.forget(db, member.actor)
        await sign_in.revoke(gateways(), gone.token)
        text = _("Everything about you is deleted.") + "\n\n" + words.ending(gone.roles)
        return Reply(_("You are forgotten"), text, "good")

    # Translators: the name of a command: small letters, no spaces.
    @nextcord.slash_command(**named(NP_("command", "help"), N_("What this bot does, and how to know it")))
    async def help(self, interaction: Interaction) -> None:
        """List the commands."""
        await answer(interaction, self._help)

    async def _help(self, context: InteractionContext) -> Reply:
        registered = context.interaction.client.get_all_application_commands()
        # Discord shows a command that needs a permission only to people who have it; here it is listed last.
        order = sorted(registered, key=lambda one: (one.default_member_permissions is not None, one.name or ""))
        shown = [(name_of(one), _(one.description)) for one in order if one.name != "help"]
        return words.help_(str(context.interaction.application_id), shown)


def cog(presses: Presses) -> commands.Cog:
    """Return the cog."""
    return GeneralCommands(presses)
