"""/why, /recheck and /rules, and the panel's My roles and Re-check: a member's roles, and the rules for them."""

import nextcord
from nextcord.ext import commands

from bot.interaction import own_wallets, recheck_wait
from bot.interaction.answering import InteractionContext, answer, offer
from bot.interaction.delivery import Interaction
from bot.interaction.localizations import named
from bot.interaction.presses import Presses
from bot.messages import sentences
from bot.messages.reply import MOST_FIELDS, Reply
from locales import N_, NP_, _
from models import transaction
from services.core.relative_times import in_seconds
from services.guilds.members import MemberContext
from services.rules import views
from services.servers import explain, recheck_report
from services.triggers import rechecks


class Roles(commands.Cog):
    """Commands about the roles that a member has, lacks and could have."""

    def __init__(self, presses: Presses) -> None:
        presses.pressed |= {"roles": self.show_roles, "recheck": self.look_again, "rules": self.show_rules}

    # Translators: the name of a command: small letters, no spaces. It says why a member has each role.
    @nextcord.slash_command(**named(NP_("command", "why"), N_("Each role here: whether you have it, and why")))
    async def why(
        self,
        interaction: Interaction,
        role: str = nextcord.SlashOption(
            # Translators: the name of a command's option: small letters, no spaces.
            **named(NP_("command", "role"), N_("Only this role")),
            required=False,
            default="",
        ),
    ) -> None:
        """Explain every role, or only the chosen one."""
        await answer(interaction, lambda context: self._why(context, role))

    @why.on_autocomplete("role")
    async def roles_like(self, interaction: Interaction, typed: str) -> None:
        """Offer the roles with rules whose name contains the typed text."""

        async def find(member: MemberContext) -> list[tuple[str, str]]:
            async with transaction() as db:
                rules = await views.names_of(db, member.server_id, shadow=False)
            return [(one.role_name, one.role_id) for one in rules if typed.casefold() in one.role_name.casefold()]

        await offer(interaction, find)

    async def show_roles(self, interaction: Interaction, arguments: list[str]) -> None:
        """Answer the panel's My roles, or show the roles from a place on."""
        await answer(interaction, lambda context: self._why(context, "", _place(arguments)))

    async def _why(self, context: InteractionContext, role: str, start: int = 0) -> Reply:
        member = await context.find_member()
        async with transaction() as db:
            seen = await explain.own(db, member.actor, member.server_id)
            doubt = await recheck_report.doubt(db, member.actor, member.server_id)
        reply = sentences.why(seen, role.strip(), start, doubt)
        return reply if all(one.held for one in seen.roles) else await own_wallets.with_hint(member, reply)

    # Translators: the name of a command: small letters, no spaces. It checks a member's wallets again.
    @nextcord.slash_command(**named(NP_("command", "recheck"), N_("Look at your wallets again, now")))
    async def recheck(self, interaction: Interaction) -> None:
        """Re-check the member at once."""
        await self.look_again(interaction, [])

    async def look_again(self, interaction: Interaction, _: list[str]) -> None:
        """Answer the panel's Re-check."""
        await answer(interaction, self._recheck)

    async def _recheck(self, context: InteractionContext) -> Reply:
        member = await context.find_member()
        before = await recheck_wait.held(member)
        async with transaction() as db:
            await rechecks.ask(db, member.actor, member.server_id)
        seconds = int(rechecks.EVERY.total_seconds())
        # Translators: {time} is such as "in 30 seconds".
        text = _("You can ask again {time}.").format(time=in_seconds(seconds))
        return await own_wallets.with_hint(member, await recheck_wait.result(member, before, _("Looked again"), text))

    # Translators: the name of a command: small letters, no spaces. It lists the roles to earn.
    @nextcord.slash_command(**named(NP_("command", "rules"), N_("The roles that you can earn here")))
    async def rules(self, interaction: Interaction) -> None:
        """List what each rule requires."""
        await self.show_rules(interaction, [])

    async def show_rules(self, interaction: Interaction, arguments: list[str]) -> None:
        """List what the rules from a place on require."""
        await answer(interaction, lambda context: self._rules(context, _place(arguments)))

    async def _rules(self, context: InteractionContext, start: int) -> Reply:
        member = await context.find_member()
        async with transaction() as db:
            named = await views.names_of(db, member.server_id, shadow=False)
            start = start if start < len(named) else 0
            # A server may have many long rules, of which one message shows a few.
            shown = [one.id for one in named[start : start + MOST_FIELDS]]
            found = await views.of_rules(db, member.server_id, shown)
        return sentences.rules(found, start, len(named))


def _place(arguments: list[str]) -> int:
    """Return the place of the first field to show, which a button for more fields has in its custom id."""
    return int(arguments[0]) if arguments and arguments[0].isdecimal() else 0


cog = Roles
