"""Prove a wallet by a transaction to itself, watched for or named by the member; what is said while none was seen."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from sqlalchemy import update
from sqlmodel import col

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.evm.transactions import Transaction
from gateways.transport.errors import NotThere, ProviderError
from locales import _, listed, sentences
from locales.stored_texts import said
from models import Challenge, now
from models.db.database import release
from models.db.session import AsyncSession
from services.core.addresses import solana_signature
from services.wallets import chain_checks, open_challenges, ownership, proof_watch
from services.wallets.ownership import GONE, SPENT, VERIFIED, Verdict
from services.wallets.transaction_check import TransactionOutcome, in_coins, marker, read_reference, waits
from services.wallets.watched_challenge import OpenChallenge

METHOD = open_challenges.METHOD
NOTING = 4.0
"""The longest time in seconds that showing a challenge waits for chains; the next check reads slower ones."""


async def follow(db: AsyncSession, outside: Gateways, row: Challenge) -> list[OpenChallenge]:
    """Start watching for a challenge on every chain where that has not begun, and check it often for a while."""
    watched = await open_challenges.load(db, [row.id or 0])
    if any(not set(proof_watch.chains_of(outside, row.family)) <= one.points.keys() for one in watched):
        await release(db)
        await chain_checks.check_challenges(outside, watched, NOTING)
        for one in watched:
            await open_challenges.store_result(db, one)
    await _touch(db, row)
    return watched


async def verify(db: AsyncSession, outside: Gateways, rows: Sequence[Challenge], pasted: str) -> Verdict:
    """Check the newest of these challenges of one address, or judge the pasted transaction.

    A pasted transaction may answer any of them.
    """
    watched = await open_challenges.load(db, [row.id or 0 for row in rows])
    if not watched:
        return Verdict(False, _(GONE))
    newest = watched[-1]
    if not proof_watch.chains_of(outside, newest.family):
        return Verdict(False, _("No chain of this wallet is set up here, so no transaction can be looked at."))
    if pasted.strip():
        return await _pasted(db, outside, watched, pasted)
    await release(db)
    await chain_checks.check_challenges(outside, [newest])
    verdict = await _settled(db, newest)
    await _touch(db, rows[-1])
    return verdict


async def status(db: AsyncSession, row: Challenge) -> Verdict:
    """Return the result of the scheduled checks without asking any chain, and keep these checks frequent."""
    if row.used_at is not None:
        return Verdict(True, _(VERIFIED))
    await _touch(db, row)
    watched = await open_challenges.load(db, [row.id or 0])
    return _waiting(watched[0]) if watched else Verdict(False, _(GONE))


async def _touch(db: AsyncSession, row: Challenge) -> None:
    await db.execute(update(Challenge).where(col(Challenge.id) == row.id).values(screen_at=now()))


async def _pasted(db: AsyncSession, outside: Gateways, watched: list[OpenChallenge], text: str) -> Verdict:
    one = watched[-1]
    if one.family == "solana":
        return await _pasted_signature(db, outside, watched, text)
    reference = read_reference(text)
    if reference is None:
        return Verdict(
            False,
            _("That is not a transaction hash: paste 0x and 64 digits of 0-9 and a-f, or an explorer's link to it."),
        )
    if await ownership.is_spent(db, reference.hash, one.address):
        return Verdict(False, _(SPENT))
    known = proof_watch.chains_of(outside, one.family)
    asked = [reference.chain] if reference.chain else known
    if reference.chain and reference.chain not in known:
        return Verdict(
            False,
            _("{chain} is not set up here. These chains are: {chains}.").format(
                chain=CHAINS[reference.chain].title, chains=_titles(known)
            ),
        )
    await release(db)
    found, failed = await _on_any(outside, asked, reference.hash, one.address)
    if found is None:
        if failed:
            sentence = _("{chains} cannot be asked right now. Please try again in a minute.")
            return Verdict(False, sentence.format(chains=_titles(failed)), again=True)
        unknown = _("No transaction with this hash is known on {chains} yet. Check that the hash is complete.").format(
            chains=_titles(asked, "or")
        )
        elsewhere = [_("If it was sent on another chain, paste only its hash.")] if reference.chain else []
        return Verdict(False, sentences(unknown, *elsewhere), again=True)
    meant = next((each for each in reversed(watched) if marker(found, each.wanted)), one)
    await proof_watch.conclude(outside, meant, found)
    return await _answered(db, meant)


async def _pasted_signature(
    db: AsyncSession, outside: Gateways, watched: Sequence[OpenChallenge], text: str
) -> Verdict:
    signature = solana_signature(text)
    if signature is None:
        return Verdict(
            False, _("That is not a transaction signature: paste all its 87 or 88 characters, or a link to it.")
        )
    if await ownership.is_spent(db, signature, watched[-1].address):
        return Verdict(False, _(SPENT))
    await release(db)
    try:
        one = await proof_watch.judge_signature(outside, watched, signature)
    except ProviderError:
        return Verdict(
            False, _("Solana cannot be asked right now. Nothing was changed; please try again in a minute."), again=True
        )
    if one is None:
        return Verdict(
            False, _("Solana does not know this transaction as final yet. That takes some seconds."), again=True
        )
    return await _answered(db, one)


async def _answered(db: AsyncSession, one: OpenChallenge) -> Verdict:
    """Return the verdict on a pasted transaction; after a wrong one the right one can still be pasted."""
    if one.judged is not None and one.judged.outcome is TransactionOutcome.REFUSED:
        return Verdict(False, one.judged.message)
    return await _settled(db, one)


async def _on_any(
    outside: Gateways, chains: Sequence[str], hash: str, address: str
) -> tuple[Transaction | None, list[str]]:
    """Return the transaction from the chain that has it, mined if possible; and the chains that did not answer."""
    answers = await asyncio.gather(
        *(outside.transactions.transaction(chain, hash, address) for chain in chains), return_exceptions=True
    )
    found: Transaction | None = None
    failed: list[str] = []
    for chain, answer in zip(chains, answers, strict=True):
        if isinstance(answer, Transaction):
            found = answer if found is None or found.block is None else found
        elif not isinstance(answer, ProviderError):
            raise answer
        elif not isinstance(answer, NotThere):
            failed.append(chain)
    return found, failed


async def _settled(db: AsyncSession, one: OpenChallenge) -> Verdict:
    """Store the result of a check, and return the verdict on it."""
    await open_challenges.store_result(db, one)
    row = await db.get(Challenge, one.challenge_id, populate_existing=True)
    if row is None:
        return Verdict(False, _(GONE))
    if row.used_at is not None:
        return Verdict(True, _(VERIFIED))
    if one.judged is not None and one.judged.outcome is TransactionOutcome.PROVES:
        return Verdict(False, said(row.note))
    return _waiting(one)


def _waiting(one: OpenChallenge) -> Verdict:
    """Return the progress as a verdict, even if no transaction was seen yet."""
    if one.seen is not None:
        told = said(one.note or waits(one.seen.chain, one.seen.confirmations))
        title = CHAINS[one.seen.chain].title
        return Verdict(False, told, True, title, one.seen.confirmations, one.seen.needed)
    contracts = [chain for chain, point in one.points.items() if point.contract and not CHAINS[chain].contracts_send]
    remarks = [said(one.note)] if one.note else []
    if contracts:
        remarks.insert(0, _about_contracts(contracts, in_coins(one.amount_wei)))
    if one.unreachable:
        remarks.append(_("{chains} cannot be asked right now.").format(chains=_titles(sorted(one.unreachable))))
    if lost := [chain for chain, point in one.points.items() if point.lost]:
        remarks.append(
            _("On {chains} this wallet can no longer be followed: what it sent there needs its hash.").format(
                chains=_titles(lost)
            )
        )
    if one.family == "solana":
        nothing = _("No transaction with the memo {code}, signed by this wallet, was seen yet.").format(code=one.code)
    else:
        amount = in_coins(one.amount_wei)
        nothing = _(
            "No transaction of this wallet to itself with exactly {amount} of the chain's coin was seen yet."
        ).format(amount=amount)
    told = [*([] if one.note else [nothing]), *remarks, _("If you have sent it, you can paste its hash or a link.")]
    return Verdict(False, sentences(*told), again=True, remark=sentences(*remarks))


def _about_contracts(chains: Sequence[str], amount: str) -> str:
    """Return what the contract wallets at an address can and cannot do."""
    return _(
        "There is a smart-contract wallet at this address on {chains}. You verify a Safe by a transaction in "
        "which it pays exactly {amount} of the chain's coin to itself, an ERC-4337 account by a UserOperation that "
        "does so. It then counts on that chain only. An OpenSea bio verifies no contract. Other contracts cannot be "
        "verified: delegate them at delegate.xyz to a wallet of yours."
    ).format(chains=_titles(chains), amount=amount)


def _titles(chains: Sequence[str], last: Literal["and", "or"] = "and") -> str:
    return listed((CHAINS[chain].title for chain in chains), last)
