"""The list of a person's verified wallets, and removing one."""

from dataclasses import dataclass, replace

import reflex as rx

from gateways import gateways
from locales import N_, _, day
from models import transaction
from services.core.actors import Actor
from services.core.chain_names import chain_title
from services.core.errors import WalletNotFound
from services.runtime import rate_limits
from services.wallets import names, wallets
from state.core.dialog import RowDialog
from state.core.gate import background, signed_in, writes
from state.core.retry import ask
from state.core.toasts import say
from state.core.watchers import Watcher

METHOD_WORDS = {wallets.BIO: N_("opensea bio"), wallets.TRANSACTION: N_("transaction")}
"""The methods of a proof, as worded within a sentence."""


@dataclass(frozen=True)
class WalletRowView:
    """A verified wallet as its owner sees it; `name` is its ENS name, if any."""

    id: int
    address: str
    short: str
    chain: str
    method: str
    since: str
    name: str = ""
    only_on: str = ""
    """The only chain on which a contract account counts; empty for other wallets."""


class WalletsState(RowDialog, rx.State):
    """The list Verified Wallets."""

    loaded: bool = False
    failed: bool = False
    rows: list[WalletRowView] = []
    asked_short: str = ""
    _names: dict[str, str] = {}

    @signed_in
    async def load(self, actor: Actor):
        """List the wallets."""
        self.failed = not self.loaded
        await self._read(actor)
        self.loaded, self.failed = True, False
        yield WalletsState.name_rows()

    @signed_in
    async def read_again(self, actor: Actor):
        """Read the list again after a wallet was verified."""
        await self._read(actor)
        yield WalletsState.name_rows()

    @signed_in
    async def tab_changed(self, actor: Actor, hidden: bool):
        """Read the list again when the tab is shown: a wallet may have been verified in Discord or another tab."""
        if not hidden and self.loaded:
            await self._read(actor)
            yield WalletsState.name_rows()

    async def _read(self, actor: Actor) -> None:
        listed = await ask(lambda db: wallets.list_wallets(db, actor))
        self.rows = [_row(wallet, self._names.get(wallet.wallet_address, "")) for wallet in listed]

    @background
    @signed_in
    async def name_rows(self, actor: Actor) -> None:
        """Add the names that lead to the wallets; if there are none, the list stays as it is."""
        async with self:
            asked = [row.address for row in self.rows if row.address not in self._names]
        if not asked:
            return
        async for _turn in Watcher(self, actor, "names").looks(limit=rate_limits.LOOKUPS):
            found = await names.primary_names(gateways(), asked)
            if not found:
                return
            async with self:
                self._names = {**self._names, **found}
                self.rows = [replace(row, name=self._names.get(row.address, "")) for row in self.rows]

    @signed_in
    async def ask_remove(self, actor: Actor, wallet_id: int) -> None:
        """Open the dialog that explains the removal."""
        row = next((one for one in self.rows if one.id == wallet_id), None)
        self.asked_id, self.asked_short = (row.id, row.short) if row else (0, "")

    @writes
    async def remove(self, actor: Actor) -> None:
        """Remove the wallet that the dialog is about."""
        wallet_id, self.asked_id = self.asked_id, 0
        if not wallet_id:
            return
        left = [row for row in self.rows if row.id != wallet_id]
        try:
            async with transaction() as db:
                await wallets.remove(db, actor, wallet_id)
        except WalletNotFound:
            # Another tab has removed it.
            self.rows = left
            raise
        self.rows = left
        said = _("{wallet} no longer counts for your roles.").format(wallet=self.asked_short)
        await say(self, _("Wallet removed"), said)


def _row(wallet: wallets.WalletView, name: str) -> WalletRowView:
    return WalletRowView(
        id=wallet.id,
        address=wallet.wallet_address,
        short=wallet.short_address,
        chain=chain_title(wallet.blockchain),
        method=_(METHOD_WORDS.get(wallet.verification_method, wallet.verification_method)),
        since=day(wallet.created_at),
        name=name,
        only_on=chain_title(wallet.only_on) if wallet.only_on else "",
    )
