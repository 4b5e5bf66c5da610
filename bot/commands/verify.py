"""/verify and the panel's Verify: claim an address, show its code, and check until the proof is found."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import nextcord

from bot.interaction import recheck_wait
from bot.interaction.answering import InteractionContext, answer, ask, outcome, show
from bot.interaction.background import BackgroundCog
from bot.interaction.delivery import Interaction
from bot.interaction.forms import ADDRESS, HASH, METHOD, Form, choice_part, text_part
from bot.interaction.localizations import named
from bot.interaction.presses import Presses
from bot.messages import verify_sentences
from bot.messages.reply import Reply
from gateways import gateways
from locales import N_, NP_, _
from models import transaction
from services.core.errors import FieldRefused
from services.guilds.members import MemberContext
from services.runtime import rate_limits
from services.wallets import bio_proof, bio_schedule, names, wallets
from services.wallets.ownership import Verdict
from services.wallets.wallets import ChallengeView

CLAIM, SENT = "holdfast:claim", "holdfast:sent"
LOOKED_FOR, LOOKED_EVERY, LATER_EVERY = 600.0, 5.0, 15.0
"""Seconds for which we check for a transaction (an answer can be edited for 15 minutes), between checks in the first
minute, and between later checks. `services/wallets/bio_schedule.py` has the times for bios."""
MOST_SEARCHES = 5
"""Wallets of one person for which we check at the same time; for more, the oldest check ends."""

_ONE = "[^:]+"
_METHOD_AND_ADDRESS = f"{_ONE}:{_ONE}"


class Verify(BackgroundCog):
    """The commands and buttons with which a member proves a wallet."""

    def __init__(self, presses: Presses) -> None:
        self.looking: dict[tuple[str, str], asyncio.Task[None]] = {}
        """By person and address, the task that checks for the proof, oldest first."""
        self._leaves: bool = False
        presses.pressed |= {"verify": self.ask, "check": self.check, "hash": self.ask_hash, "address": self.confirm}
        presses.sent |= {"claim": self.claim, "sent": self.sent}
        presses.arguments |= {"check": _METHOD_AND_ADDRESS, "address": _METHOD_AND_ADDRESS, "hash": _ONE, "sent": _ONE}

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Return the tasks that check for proofs."""
        return self.looking.values()

    def take_leave(self) -> None:
        """End the checks, and show their people that they have to press a button now."""
        self._leaves = True
        self.cog_unload()

    @nextcord.slash_command(
        # Translators: the name of a command: small letters, no spaces. It verifies a wallet.
        **named(NP_("command", "verify"), N_("Verify that a wallet is yours, without connecting it"))
    )
    async def verify(self, interaction: Interaction) -> None:
        """Ask for the address and the method."""
        await self.ask(interaction, [])

    async def ask(self, interaction: Interaction, _arguments: list[str]) -> None:
        """Ask for the address and the method."""
        await ask(interaction, claim_form)

    async def claim(self, interaction: Interaction, _arguments: list[str], fields: Mapping[str, str]) -> None:
        """Accept the claimed address: say how to prove it, and check in the background."""
        method = fields.get(METHOD) or wallets.BIO
        await answer(interaction, lambda context: self._claim(context, fields.get(ADDRESS, ""), method))

    async def confirm(self, interaction: Interaction, arguments: list[str]) -> None:
        """Accept the confirmed address behind a name."""
        method, address = arguments
        await answer(interaction, lambda context: self._claim(context, address, method))

    async def _claim(self, context: InteractionContext, claimed: str, method: str) -> Reply:
        if method not in wallets.METHODS:
            method = wallets.BIO
        member = await context.find_member(keep=True)
        await rate_limits.spend(rate_limits.PROOFS, member.actor.user_id)
        try:
            async with transaction() as db:
                asked = await wallets.challenge(db, gateways(), member.actor, claimed)
        except FieldRefused as fault:
            return verify_sentences.refused(fault.message)
        if names.is_name(claimed):
            return verify_sentences.confirm(asked, method)
        return await self._asked(context, member, asked, method)

    async def _asked(
        self, context: InteractionContext, member: MemberContext, asked: ChallengeView, method: str, note: str = ""
    ) -> Reply:
        """Say how to prove the address, below a note about an earlier challenge, and check in the background."""
        if method == wallets.BIO and asked.family != "evm":
            return verify_sentences.without_profile(asked.address)
        async with transaction() as db:
            if await wallets.is_verified(db, member.actor, asked.family, asked.address, method):
                return Reply(_("Wallet verified"), _(wallets.VERIFIED), "good")
            if method == wallets.TRANSACTION:
                await wallets.follow(db, gateways(), member.actor, asked.address)
        self._look_on(ProofSearch(context, member, asked.address, method, bio_schedule.after_showing()))
        return verify_sentences.challenge(asked, method, context.username, note)

    async def check(self, interaction: Interaction, arguments: list[str]) -> None:
        """Check at once."""
        method, address = arguments
        await answer(interaction, lambda context: self._check(context, address, method))

    async def ask_hash(self, interaction: Interaction, arguments: list[str]) -> None:
        """Ask for the transaction that was sent."""
        (address,) = arguments
        await ask(interaction, lambda: hash_form(address))

    async def sent(self, interaction: Interaction, arguments: list[str], fields: Mapping[str, str]) -> None:
        """Check the transaction whose hash was entered."""
        (address,) = arguments
        hash = fields.get(HASH, "")
        await answer(interaction, lambda context: self._check(context, address, wallets.TRANSACTION, hash))

    async def _check(self, context: InteractionContext, address: str, method: str, hash: str = "") -> Reply:
        member = await context.find_member(keep=True)
        before = await recheck_wait.held(member)
        await rate_limits.spend(rate_limits.PROOFS, member.actor.user_id)
        if method == wallets.TRANSACTION and (asked := await self._new_challenge(member, address)) is not None:
            return await self._asked(context, member, asked, method, verify_sentences.no_longer_counts())
        async with transaction() as db:
            verdict = await wallets.verify(db, gateways(), member.actor, address, method, hash)
        if verdict.success:
            self._stop((context.discord_id, address))
            return await recheck_wait.result(member, before, _("Wallet verified"), verdict.message)
        if not verdict.again:
            # A wrong transaction that was pasted says nothing about the right one, which the search still looks for.
            if not hash.strip():
                self._stop((context.discord_id, address))
        elif method == wallets.BIO or (context.discord_id, address) not in self.looking:
            looks = bio_schedule.after_request(wait=verdict.wait, stretch=verdict.stretch)
            self._look_on(ProofSearch(context, member, address, method, looks))
        return verify_sentences.not_yet(verdict, address, method, pasted=bool(hash.strip()))

    async def _new_challenge(self, member: MemberContext, address: str) -> ChallengeView | None:
        """Return a new challenge if nothing that the member was shown counts any more: its amount is another one."""
        async with transaction() as db:
            if await wallets.has_open_challenge(db, member.actor, address):
                return None
            asked = await wallets.challenge(db, gateways(), member.actor, address)
            verified = await wallets.is_verified(db, member.actor, asked.family, asked.address, wallets.TRANSACTION)
            return None if verified else asked

    def _look_on(self, search: "ProofSearch") -> None:
        key = (search.context.discord_id, search.address)
        self._stop(key)
        theirs = [one for one in self.looking if one[0] == key[0]]
        for oldest in theirs[: max(0, len(theirs) + 1 - MOST_SEARCHES)]:
            self._stop(oldest)
        task = asyncio.create_task(self._look(search))
        self.looking[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    def _forget(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        if self.looking.get(key) is task:
            del self.looking[key]

    def _stop(self, key: tuple[str, str]) -> None:
        if task := self.looking.pop(key, None):
            task.cancel()

    async def _look(self, search: "ProofSearch") -> None:
        """Check until the proof is found, is refused, or takes too long, or the bot stops."""
        try:
            await self._look_until_decided(search)
        except asyncio.CancelledError:
            if self._leaves:
                reply = search.result or verify_sentences.interrupted(search.address, search.method)
                with contextlib.suppress(asyncio.CancelledError):
                    await show(search.context.interaction, reply)

    async def _look_until_decided(self, search: "ProofSearch") -> None:
        began, short = asyncio.get_running_loop().time(), False
        while (pause := search.pause(asyncio.get_running_loop().time() - began)) is not None:
            await asyncio.sleep(pause)
            reply = await outcome(self._again(search))
            if search.verdict is None:
                search.looks = search.looks.after()
            found = search.verdict
            decided = found is not None and (found.success or not found.again)
            if reply.tone == "good" or decided:
                search.result = reply
                await show(search.context.interaction, reply)
                return
            if found is not None and found.wait >= bio_proof.LONG_WAIT and not short:
                short = True
                await show(search.context.interaction, reply)
        search.result = verify_sentences.stopped(search.address, search.method)
        await show(search.context.interaction, search.result)

    async def _again(self, search: "ProofSearch") -> Reply:
        context, member, address, method = search.context, search.member, search.address, search.method
        search.verdict = None
        before = await recheck_wait.held(member)
        if (await context.find_member()).actor.user_id != member.actor.user_id:
            # They were forgotten meanwhile, and their code with them.
            gone = Verdict(False, _(wallets.GONE))
            search.saw(gone)
            return verify_sentences.not_yet(gone, address, method)
        async with transaction() as db:
            verdict = await wallets.check_again(db, gateways(), member.actor, address, method)
        search.saw(verdict)
        if not verdict.success:
            return verify_sentences.not_yet(verdict, address, method)
        return await recheck_wait.result(member, before, _("Wallet verified"), verdict.message)


@dataclass(slots=True)
class ProofSearch:
    """A background search for a proof, and the person who has to prove the wallet."""

    context: InteractionContext
    member: MemberContext
    address: str
    method: str
    looks: bio_schedule.BioChecks
    verdict: Verdict | None = None
    """The result of the last check; None if it failed."""
    result: Reply | None = None
    """The last answer; None until the search ends."""

    def pause(self, passed: float) -> float | None:
        """Return the seconds until the next check, `passed` seconds after the search began; None when it ends."""
        if self.method == wallets.BIO:
            return self.looks.next_in
        if passed >= LOOKED_FOR:
            return None
        return LOOKED_EVERY if passed < 60 else LATER_EVERY

    def saw(self, verdict: Verdict) -> None:
        """Note the result of a check."""
        self.verdict = verdict
        self.looks = self.looks.after(wait=verdict.wait, stretch=verdict.stretch)


def claim_form() -> Form:
    """Return the form of /verify and of the panel."""
    return Form(
        _("Verify a wallet"),
        CLAIM,
        [
            text_part(ADDRESS, _("Wallet address"), _("Yours; nothing is connected"), _("0x... or wallet.eth"), 120),
            choice_part(
                METHOD,
                _("How to verify it"),
                # Translators: at most 100 characters.
                _("A bio is free. A transaction is signed in your own app and costs its fee. Nothing is connected"),
                [
                    (wallets.BIO, _("OpenSea Profile Bio"), _("Put a code into the profile's bio")),
                    (wallets.TRANSACTION, _("Transaction Proof"), _("Send a tiny exact amount, or a memo on Solana")),
                ],
            ),
        ],
    )


def hash_form(address: str) -> Form:
    """Return the form for the hash of the transaction that was sent for an address."""
    hint = _("Its hash, or its page's address at a block explorer")
    part = text_part(HASH, _("Transaction"), hint, "0x…", 200)
    return Form(_("The transaction you sent"), f"{SENT}:{address}", [part])


cog = Verify
