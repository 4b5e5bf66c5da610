"""/try: a rule's answer for an address, for people who run the server."""

from collections.abc import Sequence

import nextcord
from nextcord.ext import commands

from bot.interaction.answering import InteractionContext, answer, offer
from bot.interaction.delivery import Interaction
from bot.interaction.localizations import named
from bot.messages import sentences
from bot.messages.reply import Reply
from gateways import gateways
from locales import N_, NP_, _
from models import transaction
from services.core.errors import RuleNotFound
from services.engine.previews import try_address
from services.engine.previews.proposals import RuleChange
from services.guilds.members import MemberContext
from services.rules import views
from services.rules.views import RuleName
from services.runtime import rate_limits

NOT_YOURS = N_("There is no such rule in this server, or you do not run the server (its owner and administrators do).")


class Trials(commands.Cog):
    """The command that tries an address on a rule."""

    @nextcord.slash_command(
        **named(
            # Translators: the name of a command: small letters, no spaces. It tries an address on a rule.
            NP_("command", "try"),
            N_("Try an address on a rule: yes, no or unknown, and why (for administrators)"),
        ),
        default_member_permissions=nextcord.Permissions(administrator=True),
    )
    async def try_address(
        self,
        interaction: Interaction,
        # Translators: the name of a command's option: small letters, no spaces.
        rule: str = nextcord.SlashOption(**named(NP_("command", "rule"), N_("The rule to try"))),
        address: str = nextcord.SlashOption(
            # Translators: the name of a command's option: small letters, no spaces.
            **named(NP_("command", "address"), N_("A wallet's address, or a name such as wallet.eth"))
        ),
    ) -> None:
        """Show the rule's answer for the address; nothing is stored."""
        await answer(interaction, lambda context: self._try(context, rule, address))

    @try_address.on_autocomplete("rule")
    async def rules_like(self, interaction: Interaction, typed: str) -> None:
        """Offer the server's rules whose name contains the typed text; only to administrators."""

        async def find(member: MemberContext) -> list[tuple[str, str]]:
            rules = await _rules_of(member.server_id) if interaction.permissions.administrator else ()
            return [(_label(one), str(one.id)) for one in rules if typed.casefold() in one.rule_name.casefold()]

        await offer(interaction, find)

    async def _try(self, context: InteractionContext, chosen: str, address: str) -> Reply:
        member = await context.find_member(keep=True)
        await rate_limits.spend(rate_limits.PREVIEWS, member.actor.user_id)
        rule = meant(await _rules_of(member.server_id), chosen.strip())
        try:
            if rule is None:
                raise RuleNotFound
            async with transaction() as db:
                planned = await try_address.plan(db, gateways(), member.actor, RuleChange(rule.id, {}), address)
        except RuleNotFound:
            # One sentence for both cases, so that nobody learns which rules exist.
            raise RuleNotFound(_(NOT_YOURS)) from None
        return sentences.trial(rule.rule_name, await try_address.run(gateways(), planned))


def meant(found: Sequence[RuleName], wanted: str) -> RuleName | None:
    """Return the rule with this number or, without one, with this name or label; in any case if it has no other."""
    typed = wanted.casefold()
    named = (one for one in found if wanted in {one.rule_name, _label(one)})
    alike = (one for one in found if typed in {one.rule_name.casefold(), _label(one).casefold()})
    return next((one for one in found if wanted == str(one.id)), None) or next(named, None) or next(alike, None)


def _label(rule: RuleName) -> str:
    """Return a rule's name as Discord offers it; the number distinguishes rules of one name."""
    # Translators: a choice of /try: a rule's name and its number.
    return _("{name} (rule {number})").format(name=rule.rule_name[:80], number=rule.id)


async def _rules_of(server_id: int) -> tuple[RuleName, ...]:
    async with transaction() as db:
        return await views.names_of(db, server_id, shadow=True)


cog = Trials
