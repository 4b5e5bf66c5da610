"""/wallets: a member's wallets, and how this server uses them."""

from collections.abc import Iterator, Sequence

import nextcord
from nextcord.ext import commands

from bot.interaction import own_wallets, recheck_wait
from bot.interaction.answering import MOST_CHOICES, InteractionContext, answer, offer
from bot.interaction.delivery import Interaction
from bot.interaction.localizations import named
from bot.interaction.presses import Presses
from bot.messages import sentences
from bot.messages.reply import NO, YES, Button, Choice, Reply
from locales import N_, NP_, _
from models import transaction
from models.db.row_ids import row_id
from services.core.chain_names import chain_title
from services.core.errors import WalletNotFound
from services.guilds.members import MemberContext
from services.privacy import preferences
from services.wallets import wallets
from services.wallets.wallets import WalletView

MOST_MENUS = 4
"""Menus in one message: it has five rows (docs/facts.md#discord-components), and the buttons need one."""


class Wallets(commands.Cog):
    """The commands that list, remove, use and share wallets."""

    def __init__(self, presses: Presses) -> None:
        presses.pressed |= {
            "drop": self.ask_remove, "dropped": self.remove,
            "use": self.use, "share": self.share, "wallets": self.keep,
        }  # fmt: skip
        presses.arguments |= {"dropped": "[0-9]+", "use": f"{YES}|{NO}", "share": f"{YES}|{NO}"}

    @nextcord.slash_command(
        # Translators: the name of a command: small letters, no spaces. It lists a member's wallets.
        **named(NP_("command", "wallets"), N_("Your wallets: list, remove, use them here or not, share or not"))
    )
    async def wallets(
        self,
        interaction: Interaction,
        remove: str = nextcord.SlashOption(
            # Translators: the name of a command's option: small letters, no spaces. The wallet to remove.
            **named(NP_("command", "remove"), N_("A wallet to remove")),
            required=False,
            default="",
        ),
    ) -> None:
        """List the wallets, or ask before one is removed."""
        if remove:
            await self.ask_remove(interaction, [remove])
        else:
            await answer(interaction, self._list)

    @wallets.on_autocomplete("remove")
    async def wallets_like(self, interaction: Interaction, typed: str) -> None:
        """Offer the person's own wallets whose address contains the typed text."""
        part = typed.casefold()

        async def find(member: MemberContext) -> list[tuple[str, str]]:
            return [
                (label(one), str(one.id))
                for one in await self._own(member)
                if part in one.wallet_address.casefold() or part in one.short_address.casefold()
            ]

        await offer(interaction, find)

    async def keep(self, interaction: Interaction, _arguments: list[str]) -> None:
        """Show the person's wallets in place of the question whether to remove one."""
        await answer(interaction, self._list, takes_place=True)

    async def _own(self, member: MemberContext) -> list[WalletView]:
        async with transaction() as db:
            return await wallets.list_wallets(db, member.actor)

    async def _list(self, context: InteractionContext) -> Reply:
        member = await context.find_member()
        return await self._shown(member, _("Your wallets"))

    async def _shown(self, member: MemberContext, title: str) -> Reply:
        found, choice = await own_wallets.read(member)
        buttons = [sentences.add_wallet()]
        if found:
            uses, shares = choice is None or choice.use_wallets, choice is not None and choice.share_wallets
            buttons += [
                Button(f"holdfast:use:{NO}", _("Don't use them here")) if uses else sentences.use_wallets(),
                Button(
                    f"holdfast:share:{NO if shares else YES}",
                    _("Hide from admins") if shares else _("Share with admins"),
                ),
            ]
        text = sentences.wallets(found, choice)
        return Reply(title, text, buttons=tuple(buttons), choices=tuple(menus(found)))

    async def ask_remove(self, interaction: Interaction, arguments: list[str]) -> None:
        """Say what removing a wallet does, and ask for confirmation."""
        wanted = arguments[-1] if arguments else ""
        await answer(interaction, lambda context: self._ask_remove(context, wanted))

    async def _ask_remove(self, context: InteractionContext, wanted: str) -> Reply:
        member = await context.find_member()
        found = meant(await self._own(member), wanted)
        if not found:
            raise WalletNotFound(
                _("That wallet is not yours, or was removed. The command /wallets lists your wallets.")
            )
        if len(found) > 1:
            return await self._shown(member, _("Your wallets"))
        (wallet,) = found
        return Reply(
            _("Remove {wallet}?").format(wallet=label(wallet)),
            _("It no longer counts for your roles. Roles that depend on it are taken back; you can verify it again."),
            "warning",
            buttons=(
                Button(f"holdfast:dropped:{wallet.id}", _("Remove wallet"), nextcord.ButtonStyle.danger),
                Button("holdfast:wallets", _("Keep it")),
            ),
        )

    async def remove(self, interaction: Interaction, arguments: list[str]) -> None:
        """Remove the wallet after the confirmation."""
        wallet_id = row_id(arguments[0] if arguments else "") or 0
        await answer(interaction, lambda context: self._remove(context, wallet_id))

    async def _remove(self, context: InteractionContext, wallet_id: int) -> Reply:
        member = await context.find_member()
        before = await recheck_wait.held(member)
        try:
            async with transaction() as db:
                await wallets.remove(db, member.actor, wallet_id)
        except WalletNotFound:
            # The button stays under the question, and the first click has removed it.
            return await self._shown(member, _("Your wallets"))
        text = _("It no longer counts for your roles.")
        return await recheck_wait.result(member, before, _("Wallet removed"), text)

    async def use(self, interaction: Interaction, arguments: list[str]) -> None:
        """Set whether the person's wallets count in this server."""
        await answer(interaction, lambda context: self._choose(context, use=arguments == [YES]))

    async def share(self, interaction: Interaction, arguments: list[str]) -> None:
        """Set whether this server's admins see the person's shortened addresses."""
        await answer(interaction, lambda context: self._choose(context, share=arguments == [YES]), takes_place=True)

    async def _choose(self, context: InteractionContext, use: bool | None = None, share: bool | None = None) -> Reply:
        member = await context.find_member(keep=True)
        before = await recheck_wait.held(member)
        async with transaction() as db:
            await preferences.choose(db, member.actor, member.server_id, use_wallets=use, share_wallets=share)
        if use is None:
            return await self._shown(member, _("Your wallets"))
        counts = _("Your wallets count in this server now.")
        said = counts if use else _("Your wallets do not count in this server any more.")
        return await recheck_wait.result(member, before, _("Changed"), said)


def menus(found: Sequence[WalletView]) -> Iterator[Choice]:
    """Yield the menus to remove a wallet; a message has room for four of them above its buttons."""
    hint = _("Remove a wallet")
    for place in range(0, min(len(found), MOST_MENUS * MOST_CHOICES), MOST_CHOICES):
        part = found[place : place + MOST_CHOICES]
        span = _("{first} to {last}").format(first=place + 1, last=place + len(part))
        yield Choice(
            f"holdfast:drop:{place}" if place else "holdfast:drop",
            f"{hint} ({span})" if len(found) > MOST_CHOICES else hint,
            tuple((str(one.id), label(one)) for one in part),
        )


def meant(found: Sequence[WalletView], wanted: str) -> list[WalletView]:
    """Return the wallets that a text can mean: one by its number, or all with this address or its short form."""
    typed = wanted.strip().casefold()
    chosen = [one for one in found if typed == str(one.id)]
    return chosen or [one for one in found if typed in {one.wallet_address.casefold(), one.short_address.casefold()}]


def label(wallet: WalletView) -> str:
    """Return a wallet as Discord offers it; a contract account can have the same address on several chains."""
    return f"{wallet.short_address} ({chain_title(wallet.blockchain)})"


cog = Wallets
