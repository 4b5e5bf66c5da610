"""Ownership of proved wallets: one user at a time, and only a strong proof moves a wallet to another."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from locales import N_
from locales.stored_texts import said, storable
from models import Challenge, Notice, SpentTransaction, User, Wallet, now
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.core.addresses import shorten
from services.core.json_view import json_view
from settings import settings

VERIFIED = N_("Your wallet has been successfully verified!")
HELD = N_("Somebody else has verified this wallet by its key, so what a contract does at its address does not move it.")
BY_BIO = "opensea_bio"
WALLET_LOCKS = 1
"""The lock space for wallets; the key is the family and the address."""
GONE = N_("Your code was deleted with everything about you. Ask for a new one.")
SPENT = N_("This transaction has verified a wallet before, and each one counts once. Send a new one, exactly as shown.")


@json_view
class LinkedProfile:
    """The profile to which a marketplace has linked a wallet: the profile's address, name, and page."""

    address: str
    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a proof; `again` means that a later check may succeed without a request.

    A transaction that waits has `confirmations` of `needed` on `chain`. `resolved` is `(name, address)` if a name was
    claimed instead of its address. `remark` is the part of the message that differs between checks.

    While a marketplace's limit allows no check, the next one is possible in `wait` seconds; while it allows few,
    `stretch` is the factor on the usual gap. `linked` is the profile that answered for a wallet that it does not name.
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
    by_transaction: bool = False
    """Whether no bio proves this wallet, but a transaction can."""


@dataclass(frozen=True, slots=True)
class WalletProof:
    """How a wallet was proved. A `strong` proof cannot be made by taking over a name, so it may move a wallet.

    `evidence` is stored with the wallet. `spends` is the transaction (hash, chain) that must not prove anything again.
    `chain` is the only chain on which a proved contract account counts; empty for a wallet that counts everywhere.
    """

    method: str
    evidence: Mapping[str, object]
    strong: bool
    spends: tuple[str, str] | None = None
    chain: str = ""


class HeldByAnother(Exception):
    """Another user has proved this wallet, and this proof is too weak to move it."""


class AlreadySpent(Exception):
    """The transaction or the code has proved a wallet before."""


class PersonGone(Exception):
    """The person has deleted their data meanwhile, and the challenge with it; GONE says so to them."""


class TooManyWallets(Exception):
    """The person has the maximum number of wallets; the message is for them."""

    def __init__(self, has: int, most: int) -> None:
        self.note: str = storable(
            "You have {has} wallets here, and a person can have at most {most}. Remove a wallet that you no longer "
            "need, then add this one.",
            has=has,
            most=most,
        )
        """The message as it is stored."""
        super().__init__(said(self.note))


def has_counting_wallet(server_id: str, discord_id: str) -> str:
    """Return the SQL condition that a wallet of the member counts in the server; both are named by SQL expressions."""
    return f"""
        EXISTS (SELECT 1 FROM "user" u JOIN wallet w ON w.user_id = u.id
            LEFT JOIN member_choice c ON c.user_id = u.id AND c.server_id = {server_id}
            WHERE u.discord_id = {discord_id} AND COALESCE(c.use_wallets, true))
    """


async def check_room(db: AsyncSession, user_id: int, family: str, address: str) -> None:
    """Raise TooManyWallets if the person has the maximum number of wallets and this one is not among them.

    Takes no lock, so concurrent proofs can exceed the limit by their number.
    """
    most = settings().wallets_per_person
    found = await db.execute(
        "SELECT count(*), COALESCE(bool_or(family = :family AND address = :address), false) FROM wallet "
        "WHERE user_id = :user",
        {"user": user_id, "family": family, "address": address},
    )
    has, is_theirs = found.one()
    if has >= most and not is_theirs:
        raise TooManyWallets(has, most)


async def keep(db: AsyncSession, actor: Actor, row: Challenge, proof: WalletProof) -> None:
    """Make the challenge's address the actor's wallet, use up the challenge, and queue the people concerned.

    Call it before any other write about the actor. Raises HeldByAnother, AlreadySpent, TooManyWallets and PersonGone
    without writing anything about a wallet. It is not an error if a concurrent check has used up the challenge for the
    actor.
    """
    await db.lock(f"{row.family}:{row.address}", WALLET_LOCKS)
    former = await _replaced(db, row, proof.chain)
    present = await db.get(Challenge, row.id, populate_existing=True)
    if present is not None and present.used_at is not None:
        if not any(one.user_id == actor.user_id for one in former):
            raise AlreadySpent
        return
    if any(one.user_id != actor.user_id and not _may_move(one, proof) for one in former):
        raise HeldByAnother
    await check_room(db, actor.user_id, row.family, row.address)
    holders = select(User.discord_id).where(col(User.id).in_({one.user_id for one in former}))
    people = {actor.discord_id, *(await db.exec(holders)).all()}
    # In the order in which a deletion of data locks: the queue, the person, what belongs to them.
    await queue.mark_people(db, sorted(people), [row.address])
    if actor.user_id not in await hold_users(db, {actor.user_id, *(one.user_id for one in former)}):
        raise PersonGone
    if await db.get(Challenge, row.id, populate_existing=True, with_for_update=True) is None:
        raise AlreadySpent
    # Its owner may have removed the wallet while this waited, or deleted all their data.
    former = await _replaced(db, row, proof.chain, lock=True)
    if proof.spends is not None:
        await _spend(db, *proof.spends)
    # A further proof by its owner does not limit a wallet that counts everywhere to a single chain.
    if not any(one.user_id == actor.user_id and one.chain in {"", proof.chain} for one in former):
        moved_from = await _remove(db, actor, former)
        wallet = {
            "user_id": actor.user_id, "family": row.family, "address": row.address, "chain": proof.chain,
            "method": proof.method, "evidence": {**proof.evidence, "movedFrom": moved_from}, "created_at": now(),
        }  # fmt: skip
        made = await db.execute(insert(Wallet).values(**wallet).returning(col(Wallet.id)))
        await queue.call_off_removals_from(db, actor.discord_id)
        data = {"walletId": made.scalar_one(), "method": proof.method, "marker": proof.evidence.get("marker")}
        line = audit.line("wallet.proved", actor=actor.discord_id, subject=actor.discord_id, data=data)
        await audit.record(db, line)
    elif not proof.chain and proof.method != BY_BIO:
        # From now on no contract's proof moves it. Its id stays the same, because payouts refer to it.
        for one in former:
            if one.user_id == actor.user_id and one.method == BY_BIO:
                one.method, one.evidence = proof.method, dict(proof.evidence)
                db.add(one)
    row.used_at, row.seen, row.note = now(), {}, ""
    db.add(row)
    await db.flush()


async def hold_users(db: AsyncSession, users: Collection[int]) -> set[int]:
    """Return those of these users who have not deleted their data; until the transaction ends, a deletion waits."""
    found = await db.execute(
        'SELECT id FROM "user" WHERE id = ANY(CAST(:users AS integer[])) ORDER BY id FOR KEY SHARE',
        {"users": list(users)},
    )
    return {int(user_id) for (user_id,) in found.all()}


async def _spend(db: AsyncSession, hash: str, chain: str) -> None:
    spent = insert(SpentTransaction).values(hash=hash, chain=chain, spent_at=now())
    done = await db.execute(spent.on_conflict_do_nothing().returning(col(SpentTransaction.hash)))
    if done.first() is None:
        raise AlreadySpent


def spent_by(hash: str, account: str) -> str:
    """Return the key of one account's part of a transaction: a bundle can hold the operations of many accounts.

    It stays when the person deletes their data, so it does not name the account.
    """
    return f"{hash}:{hashlib.sha256(f'{hash}:{account}'.encode()).hexdigest()}"


async def is_spent(db: AsyncSession, hash: str, account: str = "") -> bool:
    """Return whether the transaction, or the account's part of it, has proved a wallet before."""
    # Earlier versions named the account in the key.
    either = col(SpentTransaction.hash).in_([hash, spent_by(hash, account), f"{hash}:{account}"])
    return (await db.exec(select(SpentTransaction.hash).where(either))).first() is not None


async def _replaced(db: AsyncSession, row: Challenge, chain: str, *, lock: bool = False) -> list[Wallet]:
    """Return the stored wallets of the challenge's address that a proof for this chain concerns.

    A proof by the key has no chain and concerns all of them: its owner has the address everywhere. A contract account
    is a separate wallet on each chain; its proof concerns the wallets of that chain and those without a chain.
    """
    of_address = select(Wallet).where(Wallet.family == row.family, Wallet.address == row.address)
    wanted = of_address.order_by(col(Wallet.id)).execution_options(populate_existing=True)
    found = await db.exec(wanted.with_for_update() if lock else wanted)
    return [one for one in found.all() if not chain or one.chain in {"", chain}]


def _is_of_a_key(wallet: Wallet) -> bool:
    """Return whether a transaction signed by its key proved the wallet; such a wallet is not a contract account."""
    return not wallet.chain and wallet.method != BY_BIO


def _may_move(wallet: Wallet, proof: WalletProof) -> bool:
    """Return whether a proof is strong enough to move another person's wallet.

    A contract account's proof never moves a wallet that its key proved: the key may have allowed that contract to act.
    """
    return proof.strong and not (proof.chain and _is_of_a_key(wallet))


async def _remove(db: AsyncSession, actor: Actor, former: Sequence[Wallet]) -> str | None:
    """Remove the wallets that a proof replaces; return the Discord id of another person who lost one, or None."""
    moved_from = None
    for one in former:
        if one.user_id != actor.user_id:
            moved_from = await _take_over(db, one)
        else:
            await db.delete(one)
            await db.flush()
    return moved_from


async def _take_over(db: AsyncSession, former: Wallet) -> str:
    """Remove the wallet from its former owner: they get a notice, and their roles follow the removal policy."""
    holder = await db.get_one(User, former.user_id)
    await db.delete(former)
    await db.flush()
    db.add(Notice(discord_id=holder.discord_id, kind="wallet.moved", data={"address": shorten(former.address)}))
    await audit.record(db, audit.line("wallet.moved", subject=holder.discord_id))
    return holder.discord_id
