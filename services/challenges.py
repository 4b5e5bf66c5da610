"""What a member is asked to show for an address: a code of their own, for a day, used up by success."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from sqlmodel import col, select

from gateways import Gateways
from models import Challenge, now
from models.database import AsyncSession
from services.actors import Actor
from services.addresses import AddressRefused, parse
from services.errors import FieldRefused
from services.proof import handle_marker, new_code

LIFETIME = timedelta(hours=24)
SMALLEST_GAP = timedelta(minutes=10)
"""A challenge with less time left than this is replaced, so that nobody is handed one about to end."""

_AMOUNT_UNIT = 10**6
_AMOUNTS = 10**6


@dataclass(frozen=True, slots=True)
class ChallengeView:
    """What to put into the profile of one address, until when, and where that profile is."""

    code: str
    handle_marker: str
    family: str
    address: str
    expires_at: datetime
    profile_url: str


async def challenge(db: AsyncSession, outside: Gateways, actor: Actor, address: str) -> ChallengeView:
    """The member's challenge for an address: the one they have, else a new one. Raises FieldRefused."""
    try:
        family, parsed = parse(address)
    except AddressRefused as fault:
        raise FieldRefused("address", str(fault)) from None
    row = await current(db, actor, family, parsed)
    return ChallengeView(
        code=row.code,
        handle_marker=handle_marker(actor.username),
        family=family,
        address=parsed,
        expires_at=row.expires_at,
        profile_url=outside.opensea.profile_url(parsed),
    )


async def current(db: AsyncSession, actor: Actor, family: str, address: str) -> Challenge:
    """The member's open challenge for an address, made if there is none."""
    moment = now()
    found = await db.exec(
        select(Challenge)
        .where(
            Challenge.user_id == actor.user_id,
            Challenge.family == family,
            Challenge.address == address,
            col(Challenge.used_at).is_(None),
            col(Challenge.expires_at) > moment + SMALLEST_GAP,
        )
        .order_by(col(Challenge.id).desc())
        .limit(1)
    )
    row = found.first()
    if row is None:
        row = Challenge(
            user_id=actor.user_id,
            family=family,
            address=address,
            code=new_code(),
            amount_wei=Decimal((1 + secrets.randbelow(_AMOUNTS)) * _AMOUNT_UNIT + secrets.randbelow(_AMOUNT_UNIT)),
            expires_at=moment + LIFETIME,
        )
        db.add(row)
        await db.flush()
    return row
