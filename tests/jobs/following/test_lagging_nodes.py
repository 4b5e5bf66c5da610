"""A member who bought before asking is not refused permanently by a node that has not seen the purchase yet."""

import asyncio
from datetime import timedelta
from typing import cast

import pytest
from sqlmodel import col, select, update

from gateways import gateways
from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.node import stale_seconds
from jobs.following.follower import Follower
from jobs.reconciler import Reconciler
from models import Cursor, Due, now, transaction
from services.core import queue
from services.triggers.transfer_poller import Reader
from tests.jobs.town import Town
from tests.jobs.watching import grants, looked_at


async def planned(town: Town) -> list[Due]:
    async with transaction() as db:
        mine = col(Due.key).startswith(f"{town.server_id}:")
        return list((await db.exec(select(Due).where(mine))).all())


async def followed_head() -> int:
    async with transaction() as db:
        return (await db.get_one(Cursor, "base")).head


async def with_a_lagging_node(town: Town) -> Follower:
    """Return the follower of the town's chain, whose first node sees no new block from now on."""
    await town.rule("Holder")
    follower = Follower("base")
    for _ in range(4):
        await follower.once()
    await looked_at(town)
    await town.break_("stale", "rpc:base")
    return follower


async def test_a_follower_that_asks_nodes_in_turn_keeps_the_newest_head_that_they_named(town: Town) -> None:
    follower = await with_a_lagging_node(town)
    await town.buys("carol")
    await town.buys("dave")
    head = (await town.call("chains/base/mine", blocks=3))["block"]
    heads: list[int] = []
    for _ in range(4):
        await follower.once()
        heads.append(await followed_head())
    assert heads[1:] == sorted(heads[1:])
    assert min(heads[1:]) >= head
    for who in ("carol", "dave"):
        await follower.once()
        await town.prove(who)
        await Reconciler(asyncio.Event()).once()
    assert [row.state for row in await grants(town)] == ["giving", "giving"]


async def test_a_lagging_node_is_believed_in_a_repetition_no_more_than_at_first(town: Town) -> None:
    follower = await with_a_lagging_node(town)
    await town.buys("carol")
    await town.call("chains/base/mine", blocks=3)
    for _ in range(4):
        await follower.once()
    await town.break_("500", "rpc2:base")
    await town.prove("carol")
    await Reconciler(asyncio.Event()).once()
    assert [row.priority for row in await planned(town)] == [queue.AGAIN]
    await town.call("faults", target="rpc2:base", kind="500", seconds=0.000_001)
    async with transaction() as db:
        await db.execute(update(Due).values(due_at=now()))
    await Reconciler(asyncio.Event()).once()
    assert [row.state for row in await grants(town)] == ["giving"]


async def test_a_node_that_takes_back_what_it_said_does_not_keep_the_head_up(town: Town) -> None:
    await town.rule("Holder")
    follower = Follower("base")
    for _ in range(3):
        await follower.once()
    right = await followed_head()
    memory = cast(Reader, follower._reader)._memory
    memory.heads = {place: (right + 900, at) for place, (_, at) in memory.heads.items()}
    for _ in range(2):
        await follower.once()
    assert await followed_head() < right + 900


async def test_after_an_answer_that_is_older_than_the_question_the_member_is_read_once_more(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.rule("Holder")
    head = await gateways().chains.head("base")
    async with transaction() as db:
        db.add(Cursor(chain="base", block=head.block, head=head.block))
    monkeypatch.setattr("services.engine.retry_later.LAG_SECONDS", -3_600.0)
    await town.prove("carol")
    await Reconciler(asyncio.Event()).once()
    (row,) = await planned(town)
    assert (row.priority, row.reason) == (0, None)
    assert timedelta(seconds=60) < row.due_at - now() <= timedelta(seconds=90)


async def test_for_a_new_rule_on_a_chain_that_nobody_follows_yet_members_are_read_once_more(town: Town) -> None:
    await town.prove("carol")
    await looked_at(town)
    await town.rule("Holder")
    await Reconciler(asyncio.Event()).once()
    assert [row.priority for row in await planned(town)] == [0]


@pytest.mark.parametrize(("chain", "seconds"), [("base", 90), ("ethereum", 240)])
def test_the_next_look_is_made_when_no_node_may_lag_any_more(chain: str, seconds: float) -> None:
    assert stale_seconds(CHAINS[chain]) == seconds
