"""Challenges of one person that are requested and stored at the same time."""

import asyncio
import secrets
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest
from sqlalchemy import text
from sqlmodel import select

from gateways import Gateways
from gateways.evm.transactions import Nonces, Transaction
from models import Challenge, SpentTransaction, User, Wallet, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.core.actors import Actor
from services.privacy import erasure
from services.wallets import challenges, open_challenges
from services.wallets.ownership import SPENT
from services.wallets.transaction_check import Judgement, TransactionOutcome
from services.wallets.watched_challenge import JudgedTransaction, Point, SeenTransaction
from tests.support.builders import a_member, a_server, address, snowflake

pytestmark = pytest.mark.usefixtures("database")


async def somebody() -> Actor:
    async with transaction() as db:
        user = User(discord_id=snowflake(), username="somebody")
        db.add(user)
        await db.flush()
        return Actor(user.id or 0, user.discord_id, user.username)


async def waiting(db: AsyncSession, many: int) -> None:
    """Wait until at least `many` statements wait for a lock."""
    async with asyncio.timeout(60):
        while True:
            query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            if (await db.execute(text(query))).scalar_one() >= many:
                return
            await asyncio.sleep(0.05)


async def test_looks_at_one_challenge_that_overlap_do_not_deadlock() -> None:
    actor = await somebody()
    async with transaction() as db:
        row = await challenges.current(db, actor, "evm", address())

    async def settle(chains: Sequence[str], block: int) -> None:
        async with transaction() as db:
            (one,) = await open_challenges.load(db, [row.id or 0])
            one.points = {chain: Point(0, block, 1, False, 0, False) for chain in chains}
            await open_challenges.store_result(db, one)

    await settle(["base", "ethereum", "polygon"], 1)
    async with transaction() as db:
        await db.execute(text("SELECT 1 FROM trail WHERE chain = 'base' FOR UPDATE"))
        looks = [
            asyncio.create_task(settle(chains, 2))
            for chains in (["polygon", "base", "ethereum"], ["ethereum", "base", "polygon"])
        ]
        await waiting(db, 2)
    await asyncio.gather(*looks)


async def test_calls_at_once_get_one_challenge_for_one_address() -> None:
    actor, claimed = await somebody(), address()

    async def ask() -> str:
        async with transaction() as db:
            return (await challenges.current(db, actor, "evm", claimed)).code

    codes = await asyncio.gather(*(ask() for _ in range(8)))
    assert len(set(codes)) == 1
    async with transaction() as db:
        assert len((await db.exec(select(Challenge))).all()) == 1


async def test_a_trail_that_cannot_be_stored_keeps_no_other_from_moving() -> None:
    numbers: list[int] = []
    async with transaction() as db:
        for _ in range(2):
            numbers.append((await challenges.current(db, await somebody(), "evm", address())).id or 0)
        looked = await open_challenges.load(db, numbers)
        for one in looked:
            one.points = {"base": Point(0, 1, 1, False, 0, False)}
            await open_challenges.store_result(db, one)
    looked[0].points["base"] = Point(2**64, 2, 1, False, 0, False)  # a node's answer that no bigint holds
    looked[1].points["base"] = Point(1, 2, 1, False, 0, False)
    await open_challenges.store_results_apart(looked)
    async with transaction() as db:
        rows = await db.execute(text("SELECT challenge_id, nonce, block FROM trail ORDER BY challenge_id"))
        assert [tuple(row) for row in rows.all()] == [(numbers[0], 0, 1), (numbers[1], 1, 2)]


async def test_the_fault_of_one_challenge_is_not_that_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    for _ in range(2):
        actor = await somebody()
        async with transaction() as db:
            numbers.append((await challenges.current(db, actor, "evm", address())).id or 0)
    async with transaction() as db:
        looked = await open_challenges.load(db, numbers)
    for one in looked:
        one.points = {"base": Point(0, 1, 1, False, 0, False)}
        one.note = "seen"
    looked[0].points["base"] = Point(2**70, 1, 1, False, 0, False)  # too large for a bigint: the database refuses it
    await open_challenges.store_results_apart(looked)
    async with transaction() as db:
        rows = {row.id: row.note for row in (await db.exec(select(Challenge))).all()}
    assert rows == {numbers[0]: "", numbers[1]: "seen"}


@pytest.mark.parametrize("note", ["", "seen"], ids=["a trail that moved", "something found"])
async def test_a_person_who_is_erased_during_a_check_affects_nobody_elses_challenge(note: str) -> None:
    leaving, other = await somebody(), await somebody()
    numbers: list[int] = []
    async with transaction() as db:
        for actor in (leaving, other):
            numbers.append((await challenges.current(db, actor, "evm", address())).id or 0)
        looked = await open_challenges.load(db, numbers)
        for one in looked:
            one.points = {"base": Point(0, 1, 1, False, 0, False)}
            await open_challenges.store_result(db, one)
    for one in looked:
        one.points, one.note = {"base": Point(0, 2, 1, False, 0, False)}, note
    async with transaction() as db:
        await db.execute(text('DELETE FROM "user" WHERE id = :user'), {"user": leaving.user_id})
        storing = asyncio.create_task(open_challenges.store_results_apart(looked))
        await waiting(db, 1)
    await storing
    async with transaction() as db:
        trails = await db.execute(text("SELECT challenge_id, block FROM trail"))
        assert [tuple(row) for row in trails.all()] == [(numbers[1], 2)]
        (row,) = (await db.exec(select(Challenge))).all()
        assert (row.id, row.note) == (numbers[1], note)


async def test_a_proof_that_is_stored_while_its_person_is_erased_waits_for_that_and_stores_nothing() -> None:
    async with transaction() as db:
        member = await a_member(db, await a_server(db))
        user = User(discord_id=member.discord_id, username="somebody")
        db.add(user)
        await db.flush()
        actor = Actor(user.id or 0, user.discord_id, user.username)
        row = await challenges.current(db, actor, "evm", address())
        (one,) = await open_challenges.load(db, [row.id or 0])
    one.points = {"base": Point(0, 2, 1, False, 0, False)}
    one.found = JudgedTransaction("base", "0x1", 2)
    one.judged = Judgement(TransactionOutcome.PROVES, "", "amount")

    async def store() -> None:
        async with transaction() as db:
            await open_challenges.store_result(db, one)

    async with transaction() as db:
        await queue.mark_people(db, [actor.discord_id])  # as a deletion of data begins
        storing = asyncio.create_task(store())
        await waiting(db, 1)
        await erasure.forget(db, actor)
    await storing
    async with transaction() as db:
        assert not (await db.exec(select(Wallet))).all()
        assert not (await db.execute(text("SELECT 1 FROM event WHERE kind = 'wallet.proved'"))).all()


async def test_a_person_who_is_erased_while_their_check_is_stored_waits_for_it() -> None:
    actor = await somebody()
    async with transaction() as db:
        row = await challenges.current(db, actor, "evm", address())
        looked = await open_challenges.load(db, [row.id or 0])
        looked[0].points = {"base": Point(0, 1, 1, False, 0, False)}
        await open_challenges.store_result(db, looked[0])

    async def erase() -> None:
        async with transaction() as db:
            await db.execute(text('DELETE FROM "user" WHERE id = :user'), {"user": actor.user_id})

    looked[0].points = {"base": Point(0, 2, 1, False, 0, False)}
    async with transaction() as db:
        await open_challenges.store_result(db, looked[0])
        erasing = asyncio.create_task(erase())
        await waiting(db, 1)
        looked[0].note = "seen"
        await open_challenges.store_result(db, looked[0])
    await erasing
    async with transaction() as db:
        assert not (await db.exec(select(Challenge))).all()


async def test_a_transaction_that_waits_is_watched_however_many_challenges_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_challenges, "MOST_OF_ONE", 2)
    actor = await somebody()
    async with transaction() as db:
        numbers = [(await challenges.current(db, actor, "evm", address())).id or 0 for _ in range(4)]
        for one in await open_challenges.load(db, numbers):
            one.points = {"base": Point(0, 1, 1)}
            one.seen = SeenTransaction("base", "0x1", 1, 0, 1, 12) if one.challenge_id == numbers[0] else None
            await open_challenges.store_result(db, one)
    async with transaction() as db:
        for at_a_screen, watched in ((False, [numbers[0], numbers[3]]), (True, [numbers[0]])):
            found = await open_challenges.open_challenges(db, only_at_a_screen=at_a_screen)
            assert [one.challenge_id for one in found] == watched


async def test_a_transaction_that_waits_when_its_challenge_ends_is_watched_for_a_while() -> None:
    numbers = list[int]()
    for _ in range(2):
        actor = await somebody()
        async with transaction() as db:
            numbers.append((await challenges.current(db, actor, "evm", address())).id or 0)
    waits, _nothing_seen = numbers
    ended = "UPDATE challenge SET expires_at = now() - make_interval(mins => :ago)"

    async def watched(minutes_ago: int) -> list[int]:
        async with transaction() as db:
            await db.execute(text(ended), {"ago": minutes_ago})
            found = await open_challenges.open_challenges(db, only_at_a_screen=False)
            return [one.challenge_id for one in found]

    async with transaction() as db:
        for one in await open_challenges.load(db, numbers):
            one.points = {"base": Point(0, 1, 1)}
            one.seen = SeenTransaction("base", "0x1", 1, 0, 1, 12) if one.challenge_id == waits else None
            await open_challenges.store_result(db, one)
    assert [await watched(minutes) for minutes in (-9, 9, 69)] == [numbers, [waits], []]


async def test_the_frequent_search_for_open_challenges_reads_none_that_ended_long_ago() -> None:
    """It runs every few seconds, and a challenge is kept for a week after its end."""
    actor = await somebody()
    async with transaction() as db:
        await db.execute(
            text("""
                INSERT INTO challenge (user_id, family, address, code, amount_wei, created_at, expires_at, seen, note)
                SELECT :user, 'evm', 'a' || n, 'c' || n, 1, now(), now() - interval '2 days', '{}', ''
                FROM generate_series(1, 5000) n
            """),
            {"user": actor.user_id},
        )
        await db.execute(text("ANALYZE challenge"))
        values = {"most": open_challenges.MOST_OF_ONE, "waited": open_challenges.WAITED_FOR}
        plan = (await db.execute(text(f"EXPLAIN {open_challenges._OPEN}"), values)).scalars().all()
    assert not [line for line in plan if "Seq Scan on challenge" in line], plan


class SlowAboutOne:
    """Nodes of Base on which each account has sent something to itself; they are silent about `slow` until told."""

    def __init__(self, slow: str, amounts: dict[str, int]) -> None:
        self.slow, self.amounts, self.told = slow, amounts, asyncio.Event()

    def gateways(self) -> Gateways:
        return cast("Gateways", SimpleNamespace(transactions=self, chains=SimpleNamespace(endpoints=lambda _: 1)))

    def chains(self) -> list[str]:
        return ["base"]

    async def nonces(self, chain: str, accounts: list[str], **_: bool) -> Nonces:
        return Nonces(chain, 100, dict.fromkeys(accounts, 1), frozenset())

    async def to_themselves(self, chain: str, accounts: set[str], first: int, last: int) -> list[Transaction]:
        return [self.sent(one) for one in sorted(accounts)]

    async def transaction(self, chain: str, hash: str, account: str = "", **_: int) -> Transaction:
        if account == self.slow:
            await self.told.wait()
        return self.sent(account)

    def sent(self, by: str) -> Transaction:
        return Transaction("base", f"0x{by}", by, by, self.amounts[by], b"", 0, 99, now(), True, 100)


async def test_a_check_stores_what_it_found_for_one_person_while_it_waits_for_another() -> None:
    asked = list[Challenge]()
    for _ in range(3):
        actor = await somebody()
        async with transaction() as db:
            asked.append(await challenges.current(db, actor, "evm", address()))
    async with transaction() as db:
        await open_challenges.prepare(db)
        await db.execute(text("UPDATE schedule SET next_at = now()"))
        for one in await open_challenges.load(db, [row.id or 0 for row in asked]):
            one.points = {"base": Point(0, 98, 1)}
            await open_challenges.store_result(db, one)
    slow, other, idle = asked
    amounts = {one.address: int(one.amount_wei) for one in asked} | {idle.address: 5}
    nodes = SlowAboutOne(slow.address, amounts)

    async def proved(row: Challenge) -> bool:
        async with transaction() as db:
            return (await db.exec(select(Wallet).where(Wallet.user_id == row.user_id))).first() is not None

    checks = open_challenges.ChainChecks()
    assert await open_challenges.tick(nodes.gateways(), checks) == 3
    async with asyncio.timeout(60):
        while not await proved(other):
            assert not checks.tasks["base"].done()
            await asyncio.sleep(0.05)
    assert not await proved(slow)
    nodes.told.set()
    await checks.ended()
    assert await proved(slow)
    async with transaction() as db:
        trails = await db.execute(text("SELECT DISTINCT block FROM trail"))
        assert [block for (block,) in trails.all()] == [100]


class SilentBeside:
    """Nodes of Base, and of Ethereum, which never answers; on Base an account sends to itself once `sent` is set."""

    def __init__(self, amount: int) -> None:
        self.amount, self.sent, self.silent = amount, False, list[asyncio.Event]()

    def gateways(self) -> Gateways:
        return cast("Gateways", SimpleNamespace(transactions=self, chains=SimpleNamespace(endpoints=self.endpoints)))

    def endpoints(self, chain: str) -> int:
        return int(chain != "solana")

    def chains(self) -> list[str]:
        return ["base", "ethereum"]

    async def nonces(self, chain: str, accounts: list[str], **_: bool) -> Nonces:
        if chain == "ethereum":
            self.silent.append(asyncio.Event())
            await self.silent[-1].wait()
        return Nonces(chain, 100, dict.fromkeys(accounts, int(self.sent)), frozenset())

    async def to_themselves(self, chain: str, accounts: set[str], first: int, last: int) -> list[Transaction]:
        return [self.transfer(one) for one in accounts]

    async def transaction(self, chain: str, hash: str, account: str = "", **_: int) -> Transaction:
        return self.transfer(account)

    def transfer(self, by: str) -> Transaction:
        return Transaction("base", f"0x{by}", by, by, self.amount, b"", 0, 99, now(), True, 100)


async def followed(db: AsyncSession, actor: Actor, *chains: str) -> Challenge:
    """A challenge whose account is followed on these chains from block 98."""
    row = await challenges.current(db, actor, "evm", address())
    (one,) = await open_challenges.load(db, [row.id or 0])
    one.points = {chain: Point(0, 98, 1) for chain in chains}
    await open_challenges.store_result(db, one)
    return row


async def due() -> None:
    """Make both schedules due."""
    async with transaction() as db:
        await open_challenges.prepare(db)
        await db.execute(text("UPDATE schedule SET next_at = now()"))


async def test_a_chain_is_checked_again_while_another_ones_check_still_runs() -> None:
    actor = await somebody()
    async with transaction() as db:
        row = await followed(db, actor, "base", "ethereum")
    nodes, checks = SilentBeside(int(row.amount_wei)), open_challenges.ChainChecks()
    for nodes.sent in (False, True):
        await due()
        assert await open_challenges.tick(nodes.gateways(), checks) == 1
        await checks.tasks["base"]
    async with transaction() as db:
        assert (await db.exec(select(Wallet).where(Wallet.user_id == actor.user_id))).first() is not None
    assert (len(nodes.silent), checks.tasks["ethereum"].done()) == (1, False)
    await checks.stop()


async def test_a_chain_whose_check_ran_too_long_is_checked_for_everybody_once_it_has_ended() -> None:
    actor = await somebody()
    async with transaction() as db:
        row = await followed(db, actor, "base", "ethereum")
        await db.execute(text("UPDATE challenge SET screen_at = now() - interval '1 hour'"))
    nodes, checks = SilentBeside(int(row.amount_wei)), open_challenges.ChainChecks()
    for _ in range(2):
        await due()
        assert await open_challenges.tick(nodes.gateways(), checks) == 1
        await checks.tasks["base"]
    nodes.silent[0].set()
    await checks.tasks["ethereum"]
    # Only the frequent check is due, and no screen is open.
    async with transaction() as db:
        await db.execute(text("UPDATE schedule SET next_at = now() WHERE name = 'challenges.soon'"))
    assert await open_challenges.tick(nodes.gateways(), checks) == 1
    assert set(checks.tasks) == {"base", "ethereum"}
    await checks.stop()


async def test_a_check_that_ends_late_replaces_no_transaction_that_another_chain_found_meanwhile() -> None:
    actor = await somebody()
    async with transaction() as db:
        row = await followed(db, actor, "base", "ethereum")
        (one,) = await open_challenges.load(db, [row.id or 0])
    for chain in ("base", "ethereum"):
        check = one.on(chain)
        check.points[chain] = Point(1, 100, 1)
        check.seen = SeenTransaction(chain, f"0x{chain}", 99, 0, 1, 12)
        await open_challenges.store_results_apart([check])
    async with transaction() as db:
        (stored,) = await open_challenges.load(db, [row.id or 0])
    assert stored.seen is not None
    assert (stored.seen.chain, stored.points["base"].block, stored.points["ethereum"].block) == ("base", 100, 98)


async def test_why_a_transaction_proves_nothing_is_said_although_another_check_stored_it_meanwhile() -> None:
    actor, hash = await somebody(), "0x" + secrets.token_hex(32)
    async with transaction() as db:
        db.add(SpentTransaction(hash=hash, chain="base"))
        row = await followed(db, actor, "base")
        one, other = [(await open_challenges.load(db, [row.id or 0]))[0] for _ in range(2)]
    other.seen = SeenTransaction("base", hash, 99, 0, 1, 12)
    await open_challenges.store_results_apart([other])
    one.judged = Judgement(TransactionOutcome.PROVES, "", "amount")
    one.found = JudgedTransaction("base", hash, 99)
    async with transaction() as db:
        await open_challenges.store_result(db, one)
        stored = await db.get_one(Challenge, one.challenge_id, populate_existing=True)
        assert (stored.note, stored.seen, stored.used_at) == (SPENT, {}, None)
