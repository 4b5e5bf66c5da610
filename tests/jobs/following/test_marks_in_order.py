"""A follower's marks wait for other marks of many members, and never deadlock with them."""

import asyncio
from typing import Any

import pytest

from jobs.following import follower as following
from jobs.following.follower import Follower
from jobs.following.follower_turns import FollowerTurns, Turn
from jobs.following.solana_follower import SolanaFollower
from models import Due, Server, User, Wallet, transaction
from services.core import queue
from services.triggers import chain_cursor
from services.triggers.chain_cursor import ANY, CONTRACTS, WALLETS, Position
from services.triggers.sightings import Moved
from services.triggers.solana_poller import SOLANA, AssetQuestion, Polled
from services.triggers.transfer_poller import PollResult
from services.triggers.watch_list import Watched
from tests.support.builders import a_member, a_server, address, snowflake
from tests.support.statements import until_one_waits

pytestmark = pytest.mark.usefixtures("product")
ANYTHING = AssetQuestion(ANY, ())


async def two_members(family: str) -> tuple[Server, list[str], list[str]]:
    """Store two members in the order in which marks lock them; return their server, their ids and their wallets."""
    people, wallets = list[str](), list[str]()
    async with transaction() as db:
        server = await a_server(db)
        for _ in range(2):
            people.append((await a_member(db, server)).discord_id)
            wallets.append(address() if family == "evm" else f"So1{snowflake()}")
            db.add(user := User(discord_id=people[-1], username="somebody"))
            await db.flush()
            db.add(Wallet(user_id=user.id or 0, family=family, address=wallets[-1], method="opensea_bio"))
    return server, people, wallets


async def while_a_sweep_marks(server: Server, people: list[str], polling: asyncio.Task[Any]) -> None:
    """Mark these people in one transaction, the last one once the follower waits for the first."""
    async with transaction() as db:
        await queue.mark_member(db, server.id or 0, people[0], queue.SWEPT)
        await until_one_waits()
        await queue.mark_member(db, server.id or 0, people[1], queue.SWEPT)
    await polling


async def priorities(server: Server, people: list[str]) -> list[int]:
    async with transaction() as db:
        return [(await db.get_one(Due, ("member", f"{server.id}:{who}"))).priority for who in people]


async def test_who_moved_a_token_and_whose_wallet_is_late_are_marked_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    server, people, wallets = await two_members("evm")
    follower = Follower("base", kind=WALLETS)
    async with transaction() as db:
        await chain_cursor.claim(db, [follower.cursor], follower.name)
    watched = Watched(wallets=tuple(wallets), servers={ANY: frozenset({server.id or 0})}, late=(wallets[0],))

    async def of(*_: object) -> Turn:
        return Turn(Position(5, ""), watched)

    async def look(*_: object) -> PollResult:
        return PollResult(Position(6, ""), 7, (Moved(ANY, wallets[1], 6),))

    monkeypatch.setattr(following, "gateways", lambda: None)
    monkeypatch.setattr(follower._turns, "of", of)
    monkeypatch.setattr(follower._reader, "look", look)
    await while_a_sweep_marks(server, people, asyncio.create_task(follower.once()))
    assert await priorities(server, people) == [queue.SWEPT, queue.SEEN]


@pytest.mark.parametrize("why", ["missed", "excessive", "released"])
async def test_who_moved_a_token_and_whom_an_unread_transfer_concerns_are_marked_apart(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    server, people, wallets = await two_members("evm")
    follower = Follower("base")
    async with transaction() as db:
        await chain_cursor.claim(db, [follower.cursor], follower.name)
        other = (await a_member(db, server, wallet=address())).discord_id
    contract, flood = address(), address()
    released = frozenset({(CONTRACTS, flood)} if why == "released" else ())
    by_contract = {one: frozenset({server.id or 0}) for one in (contract, flood)}
    watched = Watched(contracts=(contract, flood), servers=by_contract, released=released)
    excessive = {flood: "too large"} if why == "excessive" else dict[str, str]()
    moved = (Moved(contract, wallets[1], 6),)
    found = PollResult(Position(6, ""), 7, moved, excessive=excessive, missed=why == "missed")

    async def of(*_: object) -> Turn:
        return Turn(Position(5, ""), watched)

    async def look(*_: object) -> PollResult:
        return found

    monkeypatch.setattr(following, "gateways", lambda: None)
    monkeypatch.setattr(follower._turns, "of", of)
    monkeypatch.setattr(follower._reader, "look", look)
    await while_a_sweep_marks(server, people, asyncio.create_task(follower.once()))
    assert await priorities(server, [*people, other]) == [queue.SWEPT, queue.SEEN, queue.SWEPT]


async def test_a_reconcile_that_runs_at_the_end_of_an_absence_does_not_count_as_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follower = Follower("base")
    async with transaction() as db:
        await chain_cursor.claim(db, [follower.cursor], follower.name)
        member = await a_member(db, await a_server(db), wallet=address())
        await queue.mark_member(db, member.server_id, member.discord_id, queue.SEEN)
    async with transaction() as db:
        running = await queue.claim(db, "w1", 1)

    async def of(*_: object) -> Turn:
        return Turn(Position(5, ""), Watched(contracts=(address(),)))

    async def look(*_: object) -> PollResult:
        return PollResult(Position(6, ""), 7, missed=True)

    monkeypatch.setattr(following, "gateways", lambda: None)
    monkeypatch.setattr(follower._turns, "of", of)
    monkeypatch.setattr(follower._reader, "look", look)
    await follower.once()
    async with transaction() as db:
        (((unchanged, only_sighted),),) = await db.together(queue.still_ours("w1", running))
    assert (unchanged, only_sighted) == ([], [f"{member.server_id}:{member.discord_id}"])


async def test_whose_list_changed_and_whose_is_new_on_solana_are_marked_apart() -> None:
    server, people, wallets = await two_members("solana")
    follower = SolanaFollower(turns := FollowerTurns("w1"))
    async with transaction() as db:
        await chain_cursor.claim(db, [SOLANA], turns.owner)
    polled = Polled(9, fresh=(wallets[0],), changed=(wallets[1],), lists={})
    noting = asyncio.create_task(follower._note([ANYTHING], polled, {ANY: [server.id or 0]}))
    await while_a_sweep_marks(server, people, noting)
    assert await priorities(server, people) == [queue.SWEPT, queue.SEEN]
