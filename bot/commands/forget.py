"""/forget: delete everything about a person, after a question."""

import nextcord
from nextcord.ext import commands

from bot.interaction.answering import InteractionContext, answer
from bot.interaction.delivery import Interaction
from bot.interaction.localizations import named
from bot.interaction.presses import Presses
from bot.messages import sentences
from bot.messages.reply import Button, Reply
from gateways import gateways
from locales import N_, NP_, _
from models import transaction
from services.accounts import sign_in
from services.privacy import erasure


class Forget(commands.Cog):
    """The command that deletes a person's data, and the buttons of its question."""

    def __init__(self, presses: Presses) -> None:
        presses.pressed |= {"forget": self.forget_now}
        presses.arguments |= {"forget": "yes|no"}

    # Translators: the name of a command: small letters, no spaces. It deletes what we know about a person.
    @nextcord.slash_command(**named(NP_("command", "forget"), N_("Delete everything about you, after a question")))
    async def forget(self, interaction: Interaction) -> None:
        """Say what deleting the person's data does."""
        await answer(interaction, self._ask_forget)

    async def _ask_forget(self, context: InteractionContext) -> Reply:
        member = await context.find_member()
        async with transaction() as db:
            roles = await erasure.consequences(db, member.actor)
        text = _(
            "Your wallets, how they were verified, your choices, your sessions on the dashboard and what Discord "
            "granted us are deleted at once, on every server, and the log calls you by a pseudonym. This cannot be "
            "undone."
        )
        buttons = (
            Button("holdfast:forget:yes", _("Forget me"), nextcord.ButtonStyle.danger),
            Button("holdfast:forget:no", _("Keep everything")),
        )
        text = f"{text}\n\n{sentences.ending(roles)}"
        return Reply(_("Delete everything about you?"), text, "bad", buttons=buttons)

    async def forget_now(self, interaction: Interaction, arguments: list[str]) -> None:
        """Delete the person's data if they confirm it."""
        await answer(interaction, self._forget if arguments == ["yes"] else self._keep, takes_place=True)

    async def _keep(self, context: InteractionContext) -> Reply:
        member = await context.find_member()
        if not member.actor.user_id:
            # Both buttons may have been pressed before Discord showed the first answer, or /forget was used twice.
            text = _("No wallet and no choice of yours is stored, so there is nothing to keep.")
            return Reply(_("Nothing to keep"), text)
        return Reply(_("Nothing was deleted"), _("Everything stays as it is."), "good")

    async def _forget(self, context: InteractionContext) -> Reply:
        member = await context.find_member()
        async with transaction() as db:
            gone = await erasure.forget(db, member.actor)
        await sign_in.revoke(gateways(), gone.token)
        text = _("Everything about you is deleted.") + "\n\n" + sentences.ending(gone.roles)
        return Reply(_("You are forgotten"), text, "good")


cog = Forget
