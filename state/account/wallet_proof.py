"""The form that proves a wallet: what to show or send for an address, and whether the proof has arrived."""

from dataclasses import dataclass, replace
from datetime import datetime

import reflex as rx

from gateways import gateways
from locales import N_, _
from models import now, transaction
from services.core.actors import Actor
from services.core.addresses import AddressRefused, is_whole, parse
from services.core.errors import HoldfastError, ProviderUnavailable, TooMany
from services.runtime import rate_limits
from services.wallets import bio_proof, bio_schedule, names, wallets
from services.wallets.transaction_check import ChainAsk
from settings import settings
from state.account.wallets import WalletsState
from state.core.errors import UNREADABLE, sentence_of
from state.core.gate import background, signed_in
from state.core.session import SessionState
from state.core.timing import NAME_REST_SECONDS, RETURN_GAP
from state.core.toasts import refuse, say
from state.core.watchers import Watcher, new_turn

BIO, TRANSACTION = wallets.BIO, wallets.TRANSACTION
OFFERED_METHODS = wallets.METHODS
MARKER_PREFIX = bio_proof.prefix()
"""The part of a bio's marker before the colon and the username."""
VERIFIED_TITLE, VERIFIED_TEXT = N_("Wallet Verified"), N_("Your wallet has been successfully verified!")
FAILED_TITLE = N_("Verification Failed")
UNCONFIRMED = N_("Confirm the address above first.")


@dataclass(frozen=True)
class SendView:
    """The transaction to send on one chain: from the wallet to itself, with the exact amount or the data."""

    chain: str = ""
    title: str = ""
    coin: str = ""
    recipient: str = ""
    amount: str = ""
    wei: str = ""
    data: str = ""


class WalletProofState(rx.State):
    """The form Verify New Wallet."""

    address: str = ""
    method: str = BIO
    pasted: str = ""
    pending: bool = False
    note: str = ""
    address_fault: str = ""
    """What is wrong with the address or the name, shown below its field; otherwise empty."""

    code: str = ""
    """The person's code for the address; empty until the field holds an address."""
    marker: str = ""
    profile_url: str = ""
    memo: str = ""
    sends: list[SendView] = []
    send: SendView = SendView()

    name: str = ""
    """The name that the address was looked up by."""
    named_address: str = ""
    """The address of a typed name, until the person confirms it."""
    resolving: bool = False

    looking: bool = False
    shortage: str = ""
    """Why the profile cannot be read at present; otherwise empty."""
    linked_address: str = ""
    """The wallet and name of the OpenSea profile to which the claimed wallet is linked."""
    remark: str = ""
    """A remark from the last check for a transaction."""
    hopeless: bool = False
    """Whether no transaction can come from this wallet."""
    seen_on: str = ""
    """The chain of the transaction that waits for confirmations."""
    confirmations: int = 0
    needed: int = 0
    _entry: str = ""
    """Changes with each address entered, so that an answer about a former one is left out."""
    _look: str = ""
    """Changes with each check of a bio that is begun, so that the loop of a former one ends."""
    _looks: bio_schedule.BioChecks = bio_schedule.BioChecks()
    """The remaining checks of the bio."""
    _looked_at: datetime | None = None
    _verified: bool = False
    """Whether a success emptied the form: a second press of the button then needs no warning."""
    _visit: int = -1
    """The page load that the fields belong to."""

    @signed_in
    async def load(self, actor: Actor):
        """Start with an empty form, except after a mere reconnect, because people leave to send a transaction."""
        visit = (await self.get_state(SessionState)).visit
        if self._visit == visit:
            self.pending = False
            # The process that looked up the name or checked the bio may be gone.
            if self.resolving:
                yield WalletProofState.look_up(self._entry)
            if self.looking:
                yield WalletProofState.look_again(self._look)
            return
        self._visit = visit
        self._empty_form()

    def _empty_form(self) -> None:
        # An assignment is sent even if nothing changes, and would empty a field that somebody fills in meanwhile.
        if self.address:
            self.address = ""
        if self.method != BIO:
            self.method = BIO
        self.pending = self._verified = False
        self._forget()

    def _forget(self) -> None:
        """Clear everything about the previous address."""
        self.code = self.marker = self.profile_url = self.memo = self.note = self.pasted = self.address_fault = ""
        self.name = self.named_address = ""
        self.sends, self.send = [], SendView()
        self.resolving = self.looking = False
        self.remark, self.hopeless = "", False
        self.shortage = self.linked_address = ""
        self.seen_on, self.confirmations, self.needed = "", 0, 0
        self._entry = new_turn()
        self._look = new_turn()
        self._looked_at = None

    def _waits(self, verdict: wallets.Verdict) -> None:
        self.remark, self.hopeless = verdict.remark, not verdict.again
        self.seen_on, self.confirmations, self.needed = verdict.chain, verdict.confirmations, verdict.needed

    @signed_in
    async def enter_address(self, actor: Actor, value: str):
        """Show the instructions for a complete address, or look up a name."""
        given = value.strip()[:300]
        if given == self.address:
            return
        self.address, self._verified = given, False
        self._forget()
        self.profile_url = f"{settings().opensea_url}/{given}" if given else ""
        if names.is_name(given):
            yield WalletProofState.look_up(self._entry)
        elif is_whole(given):
            await self._show(actor)
            if self.method == TRANSACTION and self.code:
                yield WalletProofState.follow()

    async def _show(self, actor: Actor) -> None:
        try:
            parse(self.address)
        except AddressRefused as fault:
            self.address_fault = str(fault)
            return
        try:
            await rate_limits.spend(rate_limits.PROOFS, actor.user_id)
            async with transaction() as db:
                challenge = await wallets.challenge(db, gateways(), actor, self.address)
        except HoldfastError as fault:
            self.address_fault = fault.message
            return
        self.code, self.marker, self.profile_url = challenge.code, challenge.handle_marker, challenge.profile_url
        self.memo, self.shortage = challenge.memo or "", challenge.shortage
        self.sends = [_send(one) for one in challenge.chains]
        self.send = self.sends[0] if self.sends else SendView()

    @background
    @signed_in
    async def look_up(self, actor: Actor, turn: str) -> None:
        """Look up a name once the person stops typing."""
        async for _turn in Watcher(self, actor, "name", every=NAME_REST_SECONDS).looks():
            async with self:
                if turn != self._entry:
                    return
                self.resolving, given = True, self.address
            try:
                await rate_limits.spend(rate_limits.LOOKUPS, actor.user_id)
                name, address = await names.resolve(gateways(), given)
                note = ""
            except names.NameRefused as fault:
                name, address, note = "", "", str(fault)
            except (TooMany, ProviderUnavailable) as fault:
                name, address, note = "", "", fault.message
            async with self:
                if turn == self._entry:
                    self.resolving, self.name, self.named_address, self.address_fault = False, name, address, note

    @signed_in
    async def confirm_name(self, actor: Actor):
        """Use the name's address, which the person confirms is theirs."""
        if not self.named_address:
            return
        name, self.address = self.name, self.named_address
        self._forget()
        self.name = name
        await self._show(actor)
        if self.method == TRANSACTION and self.code:
            yield WalletProofState.follow()

    @signed_in
    async def choose_method(self, actor: Actor, value: str):
        """Switch to another method."""
        if value not in OFFERED_METHODS or value == self.method:
            return
        self.method, self.note, self.looking = value, "", False
        self._look = new_turn()
        if value == TRANSACTION and self.code:
            yield WalletProofState.follow()

    @signed_in
    async def choose_chain(self, actor: Actor, value: str) -> None:
        """Show the instructions for another chain. The transaction counts on any chain."""
        self.send = next((one for one in self.sends if one.chain == value), self.send)

    @signed_in
    async def paste(self, actor: Actor, value: str) -> None:
        """Store a transaction's hash, or a link to it."""
        self.pasted = value.strip()[:500]

    @background
    @signed_in
    async def follow(self, actor: Actor) -> None:
        """Start watching the chains."""
        async for _turn in Watcher(self, actor, "chains").looks(limit=rate_limits.PROOFS):
            async with self:
                address = self.address
            async with transaction() as db:
                await wallets.follow(db, gateways(), actor, address)

    @signed_in
    async def look(self, actor: Actor):
        """Check whether the transaction has arrived; the screen calls this every few seconds."""
        if self.method != TRANSACTION or not self.code or self.pending:
            return
        async with transaction() as db:
            verdict = await wallets.check_again(db, gateways(), actor, self.address, self.method)
        if not verdict.success:
            self._waits(verdict)
            return
        await self._welcome()
        yield WalletsState.read_again()

    @signed_in
    async def verify(self, actor: Actor):
        """Check the proof once. A bio without it is checked again automatically."""
        if not self.address:
            if not self._verified:
                await refuse(self, _("Missing Information"), _("Please enter a wallet address."))
            return
        self.pending, self.note, self.looking = True, "", False
        self.shortage = self.linked_address = ""
        self._look = new_turn()
        yield
        self._looked_at = now()
        try:
            await rate_limits.spend(rate_limits.PROOFS, actor.user_id)
            async with transaction() as db:
                verdict = await wallets.verify(db, gateways(), actor, self.address, self.method, self.pasted)
        except HoldfastError as fault:
            # Shown once the toast is gone: trying again helps only if that says so.
            self.note = fault.message
            await refuse(self, _("Error"), _("Failed to verify wallet. Please try again."))
            return
        finally:
            self.pending = False
        if verdict.success:
            await self._welcome()
            yield WalletsState.read_again()
            return
        if verdict.resolved is not None:
            self.resolving, (self.name, self.named_address) = False, verdict.resolved
            await refuse(self, _(FAILED_TITLE), _(UNCONFIRMED))
            return
        if verdict.needed:
            self._waits(verdict)
        else:
            self.note = verdict.message
        await refuse(self, _(FAILED_TITLE), verdict.message)
        self._links(verdict)
        if verdict.again and self.method == BIO:
            self.looking = True
            self._looks = bio_schedule.after_request(wait=verdict.wait, stretch=verdict.stretch)
            yield WalletProofState.look_again(self._look)

    def _links(self, verdict: wallets.Verdict) -> None:
        if verdict.linked is not None:
            self.linked_address = verdict.linked.address

    @signed_in
    async def tab_changed(self, actor: Actor, hidden: bool):
        """Check the bio at once when the person returns to the tab, probably from the profile."""
        seen = self._looked_at is not None and now() - self._looked_at < RETURN_GAP
        if hidden or self.method != BIO or not self.code or self.pending or self.linked_address or seen:
            return
        if not self.looking:
            self._looks = bio_schedule.after_showing()
        self.looking = True
        self._looks = replace(self._looks, next_in=0.0)
        yield WalletProofState.look_again(self._look)

    @signed_in
    async def claim_linked(self, actor: Actor):
        """Claim the wallet of the linked profile instead."""
        address = self.linked_address
        if address:
            self.address = ""
            yield WalletProofState.enter_address(address)

    async def _welcome(self) -> None:
        self._empty_form()
        self._verified = True
        await say(self, _(VERIFIED_TITLE), _(VERIFIED_TEXT))

    @background
    @signed_in
    async def look_again(self, actor: Actor, turn: str):
        """Check the bio, with growing pauses, until it shows the proof, another check begins or time is up."""
        async with self:
            first = self._looks.next_in
        watcher = Watcher(self, actor, "bio", every=bio_schedule.FIRST, lasts=bio_schedule.LONGEST_SHORT, first=first)
        async for _turn in watcher.looks(limit=rate_limits.PROOFS):
            async with self:
                if turn != self._look or not self.looking:
                    return
                entry, address, method = self._entry, self.address, self.method
                self._looked_at = now()
            try:
                async with transaction() as db:
                    verdict = await wallets.check_again(db, gateways(), actor, address, method)
            except UNREADABLE as fault:
                verdict = wallets.Verdict(success=False, message=sentence_of(fault), again=True)
            async with self:
                # The Verify button may have started another check of the same wallet.
                if entry != self._entry or (turn != self._look and not verdict.success):
                    return
                if verdict.success:
                    await self._welcome()
                else:
                    self._looks = self._looks.after(wait=verdict.wait, stretch=verdict.stretch)
                    self.note, self.looking = verdict.message, verdict.again and self._looks.next_in is not None
                    self._links(verdict)
                wait = self._looks.next_in
            if verdict.success:
                yield WalletsState.read_again()
            if not verdict.again or wait is None:
                return
            watcher.next_in = wait
        async with self:
            if turn == self._look and not watcher.replaced:
                self.looking = False


def _send(ask: ChainAsk) -> SendView:
    return SendView(ask.chain, ask.title, ask.coin, ask.to, ask.amount, ask.value_wei, ask.data)
