"""To whom a proved wallet belongs: it has one holder at a time, and only a strong proof moves it to another."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from models import Challenge, Notice, SpentTransaction, User, Wallet, now
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.core.addresses import shorten
from settings import settings

VERIFIED = "Your wallet has been successfully verified!"
SPENT = "This transaction has proved a wallet before, and each one counts once. Send a new one, exactly as shown."


@dataclass(frozen=True, slots=True)
class LinkedProfile:
    """The profile to which a marketplace has linked a wallet: the address that it names, its name, and its page."""

    address: str
    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a proof; `again` says that looking once more by itself may succeed.

    While a transaction waits for its confirmations, it has `confirmations` of `needed` on `chain`. `resolved` is
    `(name, address)` when a name was claimed instead of its address. `remark` is the part of the message that is not
    the same at each look.

    While a marketplace's limit allows no look, the next one is possible in `wait` seconds; while it allows few,
    `stretch` says how many times longer than usual to wait. `linked` is the profile that answered for a wallet which
    it does not name.
    """

    success: bool
    message: str
    again: bool = False
    chain: str = ""
    confirmations: int = 0
    needed: int = 0
    resolved: tuple[str, str] | None = None
    remark: str = ""
    wait: float = 0.0
    stretch: float = 1.0
    linked: LinkedProfile | None = None


@dataclass(frozen=True, slots=True)
class WalletProof:
    """How a wallet was proved. `strong` proofs cannot be made by taking over a name, so they move a wallet.

    `evidence` is kept with the wallet. `spends` is the transaction (hash, chain) that must not prove anything again.
    """

    method: str
    evidence: Mapping[str, object]
    strong: bool
    spends: tuple[str, str] | None = None


class HeldByAnother(Exception):
    """Somebody else proved this wallet before, and the proof is not one that moves it."""


class AlreadySpent(Exception):
    """The transaction has proved a wallet before."""


class TooManyWallets(Exception):
    """The person has as many wallets as one person may have; the message says so to them."""

    def __init__(self, has: int, most: int) -> None:
        super().__init__(
            f"You have {has} wallets here, and a person can have at most {most}. "
            "Remove a wallet that you no longer need, then add this one."
        )


async def check_room(db: AsyncSession, user_id: int, family: str, address: str) -> None:
    """Raise TooManyWallets if the person may have no wallet more and this one is not theirs yet.

    Nobody is locked out meanwhile, so proofs at the same moment can exceed the limit by as many as they are.
    """
    most = settings().wallets_per_person
    said = await db.execute(
        text(
            "SELECT count(*), COALESCE(bool_or(family = :family AND address = :address), false) FROM wallet "
            "WHERE user_id = :user"
        ),
        {"user": user_id, "family": family, "address": address},
    )
    has, is_theirs = said.one()
    if has >= most and not is_theirs:
        raise TooManyWallets(has, most)


async def keep(db: AsyncSession, actor: Actor, row: Challenge, proof: WalletProof) -> None:
    """Make the challenge's address the actor's wallet and use the challenge up; roles are looked at at once.

    Raises HeldByAnother, AlreadySpent and TooManyWallets, and then has written nothing. A challenge that somebody
    else's look has used up for the actor meanwhile is no error.
    """
    key = f"{row.family}:{row.address}"
    await db.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:address, 1))"), {"address": key})
    former = (await db.exec(select(Wallet).where(Wallet.family == row.family, Wallet.address == row.address))).first()
    theirs = former is not None and former.user_id != actor.user_id
    await db.refresh(row)
    if row.used_at is not None:
        if former is None or theirs:
            raise AlreadySpent
        return
    if theirs and not proof.strong:
        raise HeldByAnother
    await check_room(db, actor.user_id, row.family, row.address)
    if proof.spends is not None:
        await _spend(db, *proof.spends)
    if former is None or theirs:
        moved_from = await _take_over(db, former) if former is not None else None
        wallet = {
            "user_id": actor.user_id, "family": row.family, "address": row.address, "method": proof.method,
            "evidence": {**proof.evidence, "movedFrom": moved_from}, "created_at": now(),
        }  # fmt: skip
        await db.execute(insert(Wallet).values(**wallet))
        said = {"method": proof.method, "marker": proof.evidence.get("marker")}
        line = audit.line("wallet.proved", actor=actor.discord_id, subject=actor.discord_id, data=said)
        await audit.record(db, line)
    row.used_at, row.seen, row.note = now(), {}, ""
    db.add(row)
    await db.flush()
    await queue.mark_everywhere(db, actor.discord_id, queue.WAITING)
    await queue.mark_rivals(db, [row.address], queue.CHANGED)


async def _spend(db: AsyncSession, hash: str, chain: str) -> None:
    spent = insert(SpentTransaction).values(hash=hash, chain=chain, spent_at=now())
    done = await db.execute(spent.on_conflict_do_nothing().returning(col(SpentTransaction.hash)))
    if done.first() is None:
        raise AlreadySpent


async def is_spent(db: AsyncSession, hash: str) -> bool:
    """Whether the transaction has proved a wallet before."""
    return (await db.exec(select(SpentTransaction.hash).where(SpentTransaction.hash == hash))).first() is not None


async def _take_over(db: AsyncSession, former: Wallet) -> str:
    """Let the former holder go: they are told, and their roles follow the removal policy."""
    holder = await db.get_one(User, former.user_id)
    await db.delete(former)
    await db.flush()
    db.add(Notice(discord_id=holder.discord_id, kind="wallet.moved", data={"address": shorten(former.address)}))
    await audit.record(db, audit.line("wallet.moved", subject=holder.discord_id))
    await queue.mark_everywhere(db, holder.discord_id, queue.WAITING)
    return holder.discord_id
