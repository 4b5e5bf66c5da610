"""A person's wallets: list them, check a proof of one (without a wallet connection), and remove one."""

from datetime import datetime, timedelta

from sqlmodel import col, select

from gateways import Gateways
from locales import _
from models import Wallet, now
from models.db import row_ids
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.core.addresses import AddressRefused, parse, shorten
from services.core.errors import ProviderUnavailable, WalletNotFound
from services.core.json_view import json_view
from services.wallets import bio_proof, challenges, names, transaction_proof
from services.wallets.challenges import ChallengeView, challenge
from services.wallets.ownership import GONE, VERIFIED, Verdict

__all__ = [
    "BIO", "GONE", "METHODS", "TRANSACTION", "VERIFIED", "ChallengeView", "Verdict", "WalletView", "challenge",
    "check_again", "follow", "has_open_challenge", "is_verified", "list_wallets", "remove", "verify",
]  # fmt: skip

BIO, TRANSACTION = bio_proof.METHOD, transaction_proof.METHOD
METHODS = (BIO, TRANSACTION)
JUST = timedelta(seconds=30)
"""Overlapping checks within this time return the same result."""


@json_view
class WalletView:
    """One of a person's own wallets; a contract account counts `onlyOn` the chain on which it was proved."""

    id: int
    wallet_address: str
    blockchain: str
    verification_method: str
    created_at: datetime
    only_on: str | None = None

    @property
    def short_address(self) -> str:
        """The first 6 and the last 4 characters."""
        return shorten(self.wallet_address)


def _view(wallet: Wallet) -> WalletView:
    chain = wallet.chain or ("ethereum" if wallet.family == "evm" else "solana")
    return WalletView(wallet.id or 0, wallet.address, chain, wallet.method, wallet.created_at, wallet.chain or None)


async def list_wallets(db: AsyncSession, actor: Actor) -> list[WalletView]:
    """Return the person's own wallets, oldest first."""
    rows = await db.exec(select(Wallet).where(Wallet.user_id == actor.user_id).order_by(col(Wallet.id)))
    return [_view(row) for row in rows.all()]


async def remove(db: AsyncSession, actor: Actor, wallet_id: int) -> None:
    """Remove one of the person's own wallets; their roles follow each rule's removal policy.

    Raises WalletNotFound.
    """
    wallet = await db.get(Wallet, wallet_id) if row_ids.fits(wallet_id) else None
    if wallet is None or wallet.user_id != actor.user_id:
        raise WalletNotFound
    await queue.mark_people(db, [actor.discord_id], [wallet.address])
    # A hand-over may have been completed while this waited; the wallet then belongs to another account.
    wallet = await db.get(Wallet, wallet_id, populate_existing=True, with_for_update=True)
    if wallet is None or wallet.user_id != actor.user_id:
        raise WalletNotFound
    await db.delete(wallet)
    await audit.record(db, audit.line("wallet.removed", actor=actor.discord_id, subject=actor.discord_id))


async def follow(db: AsyncSession, outside: Gateways, actor: Actor, address: str) -> None:
    """Start watching for the transaction that answers the member's challenge for this address.

    Ignores a text that is not an address. May wait some seconds for the chains.
    """
    try:
        family, parsed = parse(address)
    except AddressRefused:
        return
    await transaction_proof.follow(db, outside, await challenges.current(db, actor, family, parsed))


async def verify(
    db: AsyncSession,
    outside: Gateways,
    actor: Actor,
    claimed: str,
    method: str,
    transaction: str = "",
    *,
    again: bool = False,
) -> Verdict:
    """Check for proof that the claimed address is the member's, and store the wallet if there is proof.

    `transaction` is a pasted hash or explorer link. Everything that a person can correct is a Verdict with a sentence,
    never an exception; a failing provider means "try again", never a verdict on the wallet. A name itself is never
    proved: the verdict says which address it stands for, and the person claims that address. `again` marks an
    automatic check.
    """
    if not claimed.strip():
        return Verdict(False, _("Please enter a wallet address."))
    if method not in METHODS:
        return Verdict(
            False, _("There is no such verification method. Choose OpenSea Profile Bio or Transaction Proof.")
        )
    try:
        if names.is_name(claimed):
            name, address = await names.resolve(outside, claimed)
            said = _("{name} stands for {address}. If that is your wallet, confirm it by sending this address.").format(
                name=name, address=address
            )
            return Verdict(False, said, resolved=(name, address))
        family, parsed = parse(claimed)
    except (AddressRefused, names.NameRefused, ProviderUnavailable) as fault:
        return Verdict(False, str(fault))
    if await is_verified(db, actor, family, parsed, method):
        return Verdict(True, _(VERIFIED))
    if not transaction.strip() and await _just_proved(db, actor, family, parsed):
        return Verdict(True, _(VERIFIED))
    row = await challenges.current(db, actor, family, parsed)
    if method == BIO:
        return await bio_proof.verify(db, outside, actor, row, again=again)
    rows = await challenges.still_open(db, actor, family, parsed)
    return await transaction_proof.verify(db, outside, rows, transaction)


async def is_verified(db: AsyncSession, actor: Actor, family: str, address: str, method: str) -> bool:
    """Return whether the wallet is the person's already, so that a proof by this method would change nothing.

    Then nobody has to show another code. A transaction still shows more than a bio, and a contract account that counts
    on one chain can be verified on another.
    """
    mine = select(Wallet.id).where(
        Wallet.user_id == actor.user_id, Wallet.family == family, Wallet.address == address, Wallet.chain == ""
    )
    if method != BIO:
        mine = mine.where(Wallet.method != BIO)
    return (await db.exec(mine)).first() is not None


async def has_open_challenge(db: AsyncSession, actor: Actor, address: str) -> bool:
    """Return whether anything that the person was asked to show for this address still counts, or was just found."""
    try:
        family, parsed = parse(address)
    except AddressRefused:
        return False
    still_open = await challenges.still_open(db, actor, family, parsed)
    return bool(still_open) or await _just_proved(db, actor, family, parsed)


async def _just_proved(db: AsyncSession, actor: Actor, family: str, address: str) -> bool:
    """Return whether another check of the member has just found the proof, so that this one needs no new code."""
    row = await challenges.newest(db, actor, family, address)
    if row is None or row.used_at is None or row.used_at < now() - JUST:
        return False
    mine = select(Wallet.id).where(Wallet.user_id == actor.user_id, Wallet.family == family, Wallet.address == address)
    return (await db.exec(mine)).first() is not None


async def check_again(db: AsyncSession, outside: Gateways, actor: Actor, address: str, method: str) -> Verdict:
    """Return whether the proof has arrived by now; a screen calls this every few seconds.

    The scheduler looks for a transaction while a screen asks, so this sends no request to a chain.
    """
    if method != TRANSACTION:
        return await verify(db, outside, actor, address, method, again=True)
    try:
        family, parsed = parse(address)
    except AddressRefused as fault:
        return Verdict(False, str(fault))
    row = await challenges.newest(db, actor, family, parsed)
    if row is None:
        return Verdict(False, _("Ask what to send first."))
    return await transaction_proof.status(db, row)
