"""Hand-over of wallets from one Discord account of a person to another; the person proves that both are theirs.

One account makes a code and the other enters it. Wallets, choices and payout addresses move in one transaction. The new
account is reconciled first, the old one a moment later.
"""

import hashlib
import secrets
from datetime import datetime, timedelta

from sqlmodel import col, delete, select

from locales import N_, _
from models import Handover, Notice, User, Wallet
from models.db import row_ids
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.core.errors import FieldRefused, WalletNotFound
from services.core.json_view import json_view
from services.runtime import rate_limits
from services.wallets.ownership import WALLET_LOCKS, TooManyWallets
from settings import settings

LIFETIME = timedelta(minutes=10)
LATER = timedelta(seconds=60)
"""How long after the new account the old one is reconciled."""
ONCE_IN = timedelta(hours=1)
"""An account that handed wallets over within this time before is reconciled at once. Accounts that hand one wallet to
each other every minute would all keep its roles otherwise."""
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_LENGTH = 12
NO_SUCH_CODE = N_("This code is not valid. It may have expired or been used: make a new one in the other account.")


@json_view
class HandoverCode:
    """A code that hands `wallets` of this account over to the account where it is entered; shown once."""

    code: str
    expires_at: datetime
    wallets: int


@json_view
class HandoverView:
    """What a code hands over, and from whom; `moved` once it has."""

    account: str
    wallets: tuple[str, ...]
    moved: bool


async def offer(db: AsyncSession, actor: Actor, wallet_id: int | None = None) -> HandoverCode:
    """Return a new code for one wallet of the actor's or, without an id, for all; it replaces an earlier code.

    Raises WalletNotFound if it would hand nothing over.
    """
    mine = select(Wallet.id).where(Wallet.user_id == actor.user_id)
    if wallet_id is not None:
        mine = mine.where(Wallet.id == (wallet_id if row_ids.fits(wallet_id) else 0))
    count = len((await db.exec(mine)).all())
    if not count:
        raise WalletNotFound
    # One call at a time: each deletes only a code that it can see, and an account has one.
    await db.lock(f"handover {actor.user_id}")
    await withdraw(db, actor)
    code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
    expires_at = await db.now() + LIFETIME
    db.add(Handover(user_id=actor.user_id, wallet_id=wallet_id, code_hash=_hash(code), expires_at=expires_at))
    await db.flush()
    return HandoverCode("-".join(code[at : at + 4] for at in range(0, _LENGTH, 4)), expires_at, count)


async def withdraw(db: AsyncSession, actor: Actor) -> None:
    """Make the actor's code invalid, if there is one."""
    await db.exec(delete(Handover).where(col(Handover.user_id) == actor.user_id))


async def preview(db: AsyncSession, actor: Actor, code: str) -> HandoverView:
    """Return what a code would hand over to the actor. Raises FieldRefused, TooMany."""
    row, giver = await _read(db, actor, code)
    return _view(giver, await _wallets(db, row), moved=False)


async def take(db: AsyncSession, actor: Actor, code: str) -> HandoverView:
    """Move the wallets of a code to the actor, with the former account's choices and payout addresses.

    The former owner gets a notice. Raises FieldRefused, also if the actor would have too many wallets, and TooMany.
    """
    row, giver = await _read(db, actor, code)
    named = {(one.family, one.address) for one in await _wallets(db, row)}
    for family, address in sorted(named):
        # A proof takes the same lock, so nobody else gets the wallet meanwhile.
        await db.lock(f"{family}:{address}", WALLET_LOCKS)
    people = sorted({actor.discord_id, giver.discord_id})
    await queue.mark_people(db, people, sorted({address for _, address in named}))
    # A removal marks the giver first too, so one that was under way has ended by now. It may have deleted the code.
    still = await db.exec(select(Handover.id).where(Handover.id == row.id).with_for_update())
    wallets = await _wallets(db, row, lock=True) if still.first() is not None else []
    if not wallets or {(one.family, one.address) for one in wallets} != named:
        raise FieldRefused("code", _(NO_SUCH_CODE))
    has = len((await db.exec(select(Wallet.id).where(Wallet.user_id == actor.user_id))).all())
    if has + len(wallets) > settings().wallets_per_person:
        raise FieldRefused("code", str(TooManyWallets(has, settings().wallets_per_person)))
    await queue.call_off_removals_from(db, actor.discord_id)
    for one in wallets:
        one.user_id = actor.user_id
        one.evidence = {**one.evidence, "movedFrom": giver.discord_id}
        db.add(one)
    await db.flush()
    ids = [one.id for one in wallets]
    who = {"giver": row.user_id, "taker": actor.user_id, "moved": ids, "fresh": has == 0}
    await db.execute(_CHOICES, who)
    await db.execute(_PAYOUTS_GONE, who)
    if not await _gave_before(db, giver.discord_id):
        await db.execute(_LATER, {"giver": giver.discord_id, "seconds": LATER.total_seconds()})
    await db.delete(row)
    db.add(Notice(discord_id=giver.discord_id, kind="wallet.handed_over", data={"count": len(wallets)}))
    await _record(db, actor, giver.discord_id)
    await db.flush()
    return _view(giver, wallets, moved=True)


async def _gave_before(db: AsyncSession, giver: str) -> bool:
    """Return whether the account handed wallets over within ONCE_IN, by the notice that it got about that."""
    found = await db.execute(
        "SELECT 1 FROM notice "
        "WHERE discord_id = :giver AND kind = 'wallet.handed_over' AND created_at > now() - :before",
        {"giver": giver, "before": ONCE_IN},
    )
    return found.first() is not None


async def _record(db: AsyncSession, actor: Actor, giver: str) -> None:
    """Write to each server's log that an account handed over or got wallets; no line names the other account."""
    lines = [audit.line("wallet.handed_over", actor=giver, subject=giver)]
    rows = await db.execute(_MEMBERSHIPS, {"people": [giver, actor.discord_id]})
    lines.extend(
        audit.line("member.handed_over", server_id=int(server_id), actor=str(who), subject=str(who),
                   data={"took": str(who) == actor.discord_id})
        for server_id, who in rows.all()
    )  # fmt: skip
    await audit.record_all(db, lines)


async def _read(db: AsyncSession, actor: Actor, code: str) -> tuple[Handover, User]:
    """Return the row of a code, and the user who made it. Raises FieldRefused, TooMany."""
    await rate_limits.spend(rate_limits.HANDOVERS, actor.user_id)
    plain = "".join(letter for letter in code.lower() if letter.isalnum())
    found = None
    if len(plain) == _LENGTH:
        theirs = select(Handover, User).join(User, col(User.id) == col(Handover.user_id))
        found = (await db.exec(theirs.where(Handover.code_hash == _hash(plain)))).first()
    if found is None or found[0].expires_at <= await db.now():
        raise FieldRefused("code", _(NO_SUCH_CODE))
    if found[0].user_id == actor.user_id:
        raise FieldRefused("code", _("You made this code in this account. Log in to the other one and enter it there."))
    return found


async def _wallets(db: AsyncSession, row: Handover, *, lock: bool = False) -> list[Wallet]:
    mine = select(Wallet).where(Wallet.user_id == row.user_id).order_by(col(Wallet.id))
    if row.wallet_id is not None:
        mine = mine.where(Wallet.id == row.wallet_id)
    found = await db.exec(
        (mine.with_for_update(key_share=True) if lock else mine).execution_options(populate_existing=True)
    )
    return list(found.all())


def _view(giver: User, wallets: list[Wallet], *, moved: bool) -> HandoverView:
    return HandoverView(giver.username, tuple(one.address for one in wallets), moved)


def _hash(code: str) -> bytes:
    return hashlib.sha256(code.encode()).digest()


# For each server where the former account made a choice: a new account that had no wallet and made no choice there
# takes that choice over as it is. Otherwise the stricter choice counts, so that nothing is shown or counted that one of
# the accounts did not want.
_CHOICES = """
    INSERT INTO member_choice (server_id, user_id, use_wallets, share_wallets, payout_wallet_id)
    SELECT x.server_id, :taker,
           x.use_wallets AND COALESCE(y.use_wallets, true),
           x.share_wallets AND COALESCE(y.share_wallets, :fresh),
           COALESCE(y.payout_wallet_id,
                    CASE WHEN x.payout_wallet_id = ANY(CAST(:moved AS integer[])) THEN x.payout_wallet_id END)
    FROM member_choice x LEFT JOIN member_choice y ON y.server_id = x.server_id AND y.user_id = :taker
    WHERE x.user_id = :giver
    ON CONFLICT (server_id, user_id) DO UPDATE SET use_wallets = EXCLUDED.use_wallets,
        share_wallets = EXCLUDED.share_wallets, payout_wallet_id = EXCLUDED.payout_wallet_id
"""
_PAYOUTS_GONE = """
    UPDATE member_choice SET payout_wallet_id = NULL
    WHERE user_id = :giver AND payout_wallet_id = ANY(CAST(:moved AS integer[]))
"""
# Delays the old account, so that the new one gets its roles first. A later mark brings the old account forward again.
_LATER = """
    UPDATE due SET due_at = now() + make_interval(secs => :seconds)
    WHERE kind = 'member' AND key = ANY(ARRAY(
        SELECT d.key FROM due d JOIN member m ON d.key = m.server_id || ':' || m.discord_id
        WHERE d.kind = 'member' AND m.discord_id = :giver ORDER BY d.key FOR UPDATE OF d))
"""
_MEMBERSHIPS = """
    SELECT m.server_id, m.discord_id FROM member m JOIN server s ON s.id = m.server_id AND s.bot_invited
    WHERE m.discord_id = ANY(CAST(:people AS text[])) AND m.left_at IS NULL ORDER BY m.server_id, m.discord_id
"""
