"""Challenges: a code and an amount to show for one address, valid for a day and used up by success."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeGuard

from sqlalchemy import delete
from sqlmodel import col, select

from gateways import Gateways
from models import Challenge, now
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.errors import FieldRefused
from services.wallets import bio_proof, names, ownership
from services.wallets.bio_proof import handle_marker, new_code
from services.wallets.proof_watch import chains_of
from services.wallets.transaction_check import ChainAsk, ask, new_amount

LIFETIME = timedelta(hours=24)
KEPT = timedelta(days=7)
"""How long a challenge is kept after its end; the privacy policy says a week."""
MOST_UNUSED = 500
"""So many unused challenges of one person are kept: the newest."""
SMALLEST_GAP = timedelta(minutes=10)
"""A challenge with less time left than this is replaced before it is shown."""


@dataclass(frozen=True, slots=True)
class ChallengeView:
    """What proves one address, in its profile or by a transaction, and until when it is valid.

    `name` is the name that was resolved to the address, if any. `chains` are the EVM chains on which it may send to
    itself; a Solana wallet has a `memo` instead.
    """

    code: str
    handle_marker: str
    family: str
    address: str
    name: str | None
    expires_at: datetime
    profile_url: str
    chains: tuple[ChainAsk, ...]
    memo: str | None
    shortage: str = ""
    """Why the profile cannot be read right now; empty if it can."""


async def challenge(db: AsyncSession, outside: Gateways, actor: Actor, claimed: str) -> ChallengeView:
    """Return the member's challenge for an address or a name: their present one, or a new one.

    Raises FieldRefused, also if they have the maximum number of wallets, and ProviderUnavailable for a name that could
    not be looked up.
    """
    family, address, name = await names.wallet_of(outside, claimed)
    try:
        await ownership.check_room(db, actor.user_id, family, address)
    except ownership.TooManyWallets as fault:
        raise FieldRefused("address", str(fault)) from None
    row = await current(db, actor, family, address)
    asks = tuple(ask(chain, address, int(row.amount_wei), row.code) for chain in chains_of(outside, "evm"))
    return ChallengeView(
        code=row.code,
        handle_marker=handle_marker(actor.username),
        family=family,
        address=address,
        name=name,
        expires_at=row.expires_at,
        profile_url=outside.opensea.profile_url(address),
        chains=asks if family == "evm" else (),
        memo=row.code if family == "solana" else None,
        shortage=bio_proof.shortage(outside) if family == "evm" else "",
    )


async def current(db: AsyncSession, actor: Actor, family: str, address: str) -> Challenge:
    """Return the member's open challenge for an address; make a new one if none is open for long enough."""
    row = await newest(db, actor, family, address)
    if not _lasts(row):
        # One call at a time: concurrent calls would make several codes for one address.
        await db.lock(f"challenge {actor.user_id} {family} {address}")
        row = await newest(db, actor, family, address)
    if not _lasts(row):
        row = Challenge(
            user_id=actor.user_id,
            family=family,
            address=address,
            code=new_code(),
            amount_wei=Decimal(new_amount()),
            expires_at=now() + LIFETIME,
        )
        db.add(row)
        await db.flush()
        await _forget_oldest(db, actor)
    return row


async def _forget_oldest(db: AsyncSession, actor: Actor) -> None:
    """Delete the member's unused challenges beyond the newest MOST_UNUSED, except those being checked just now.

    Asking for a challenge proves nothing, so without this one person could fill the table with made-up addresses.
    """
    oldest = (
        select(col(Challenge.id))
        .where(Challenge.user_id == actor.user_id, col(Challenge.used_at).is_(None))
        .order_by(col(Challenge.id).desc())
        .offset(MOST_UNUSED)
    )
    idle = select(col(Challenge.id)).where(col(Challenge.id).in_(oldest)).with_for_update(skip_locked=True)
    await db.exec(delete(Challenge).where(col(Challenge.id).in_(idle)))


def _lasts(row: Challenge | None) -> TypeGuard[Challenge]:
    """Return whether a challenge is open, and stays so for long enough to be shown."""
    return row is not None and row.used_at is None and row.expires_at > now() + SMALLEST_GAP


async def newest(db: AsyncSession, actor: Actor, family: str, address: str) -> Challenge | None:
    """Return the member's last challenge for an address, used up or not."""
    found = await db.exec(
        select(Challenge)
        .where(Challenge.user_id == actor.user_id, Challenge.family == family, Challenge.address == address)
        .order_by(col(Challenge.id).desc())
        .limit(1)
    )
    return found.first()


async def still_open(db: AsyncSession, actor: Actor, family: str, address: str) -> list[Challenge]:
    """Return all open challenges of the member for an address, oldest first."""
    found = await db.exec(
        select(Challenge)
        .where(
            Challenge.user_id == actor.user_id,
            Challenge.family == family,
            Challenge.address == address,
            col(Challenge.used_at).is_(None),
            col(Challenge.expires_at) > now(),
        )
        .order_by(col(Challenge.id))
    )
    return list(found.all())
