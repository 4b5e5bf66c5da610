"""Proving a wallet, and the list of those that are proven."""

import asyncio
from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from models import transaction
from services import challenges, wallets
from services.actors import Actor
from services.errors import HoldfastError
from settings import settings
from state.gate import actor_of, background, signed_in
from state.toasts import refuse, say

LOOK_AGAIN_EVERY, LOOK_AGAIN_FOR = 5.0, 300.0
"""Bios are cached by the marketplace: after 'not found yet' we look again this often, for this long (seconds)."""
BIO = "opensea_bio"
OFFERED_METHODS = wallets.METHODS


@dataclass(frozen=True)
class WalletRowView:
    """A proven wallet as its owner sees it."""

    id: int
    address: str
    short: str
    chain: str
    method: str
    since: str


class WalletsState(rx.State):
    """The form on the left and the list on the right."""

    loaded: bool = False
    rows: list[WalletRowView] = []
    address: str = ""
    method: str = BIO
    code: str = ""
    marker: str = ""
    profile_url: str = ""
    pending: bool = False
    looking: bool = False
    note: str = ""
    asked_id: int = 0
    asked_short: str = ""
    _look: int = 0

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Start with an empty form, and list the proven wallets."""
        self._empty_form()
        await self._list(actor)
        self.loaded = True

    def _empty_form(self) -> None:
        self.address = self.code = self.marker = self.profile_url = self.note = ""
        self.method, self.pending, self.looking = BIO, False, False
        self._look += 1

    async def _list(self, actor: Actor) -> None:
        async with transaction() as db:
            self.rows = [_row(wallet) for wallet in await wallets.list_wallets(db, actor)]

    @signed_in
    async def enter_address(self, actor: Actor, value: str) -> None:
        """Show the person's own code for the address, as soon as it is one."""
        self.address = value.strip()[:200]
        self.code = self.marker = self.note = ""
        self.looking = False
        self._look += 1
        self.profile_url = f"{settings().opensea_url}/{self.address}" if self.address else ""
        if not self.address:
            return
        try:
            async with transaction() as db:
                challenge = await challenges.challenge(db, gateways(), actor, self.address)
        except HoldfastError as fault:
            self.note = fault.message
            return
        self.code, self.marker, self.profile_url = challenge.code, challenge.handle_marker, challenge.profile_url

    @signed_in
    async def choose_method(self, actor: Actor, value: str) -> None:
        """Another way of proving."""
        if value in OFFERED_METHODS:
            self.method = value

    @signed_in
    async def verify(self, actor: Actor):
        """Look for the proof once; not found yet is looked for again by itself."""
        if not self.address:
            await refuse(self, "Missing Information", "Please enter a wallet address.")
            return
        self.pending, self.note, self.looking = True, "", False
        self._look += 1
        yield
        try:
            async with transaction() as db:
                verdict = await wallets.verify(db, gateways(), actor, self.address, self.method)
        except HoldfastError:
            await refuse(self, "Error", "Failed to verify wallet. Please try again.")
            return
        finally:
            self.pending = False
        if verdict.success:
            await self._welcome(actor)
            return
        await refuse(self, "Verification Failed", verdict.message)
        self.note = verdict.message
        if verdict.again:
            self.looking = True
            yield WalletsState.look_again(self._look)

    async def _welcome(self, actor: Actor) -> None:
        self._empty_form()
        await self._list(actor)
        await say(self, "Wallet Verified", "Your wallet has been successfully verified!")

    @background
    @signed_in
    async def look_again(self, actor: Actor, number: int) -> None:
        """Look for the proof every few seconds until it is there, something else is asked, or time is up."""
        for _ in range(int(LOOK_AGAIN_FOR / LOOK_AGAIN_EVERY)):
            await asyncio.sleep(LOOK_AGAIN_EVERY)
            if await actor_of(self) != actor:
                return
            async with self:
                if number != self._look or not self.looking:
                    return
                address, method = self.address, self.method
            try:
                async with transaction() as db:
                    verdict = await wallets.verify(db, gateways(), actor, address, method)
            except HoldfastError as fault:
                verdict = wallets.Verdict(success=False, message=fault.message, again=True)
            async with self:
                if number != self._look:
                    return
                if verdict.success:
                    await self._welcome(actor)
                    return
                self.note, self.looking = verdict.message, verdict.again
        async with self:
            if number == self._look:
                self.looking = False

    @signed_in
    async def ask_remove(self, actor: Actor, wallet_id: int) -> None:
        """Say what removing a wallet does before it is done."""
        row = next((one for one in self.rows if one.id == wallet_id), None)
        self.asked_id, self.asked_short = (row.id, row.short) if row else (0, "")

    @signed_in
    async def keep(self, actor: Actor, is_open: bool) -> None:
        """Close the question."""
        if not is_open:
            self.asked_id = 0

    @signed_in
    async def remove(self, actor: Actor) -> None:
        """Remove the wallet that the question was about."""
        wallet_id, self.asked_id = self.asked_id, 0
        async with transaction() as db:
            await wallets.remove(db, actor, wallet_id)
        await self._list(actor)
        await say(self, "Wallet removed", f"{self.asked_short} no longer counts for your roles.")


def _row(wallet: wallets.WalletView) -> WalletRowView:
    return WalletRowView(
        id=wallet.id,
        address=wallet.wallet_address,
        short=wallet.short_address,
        chain=wallet.blockchain,
        method=wallet.verification_method.replace("_", " ", 1),
        since=f"{wallet.created_at:%-d %B %Y}",
    )
