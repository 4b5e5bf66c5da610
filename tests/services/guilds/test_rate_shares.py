"""All processes share one budget of requests a second to Discord."""

import asyncio
import random

import pytest
from sqlalchemy import text

from gateways.discord.rate_limiter import READS, WRITES, RequestTurns, WaitTooLong
from models import transaction
from services.guilds.rate_shares import BOT, JOBS, KEPT, TOTAL, WEB, WRITER, Share, Wish, shares


@pytest.mark.parametrize("seed", range(50))
def test_together_they_have_all_of_it_and_each_kind_what_is_kept_for_it(seed: int) -> None:
    chance = random.Random(seed)
    wishes = [
        Wish(str(place), chance.choice([WEB, BOT, JOBS, WRITER]), chance.choice([0, 1, 10, 1000]))
        for place in range(chance.randint(1, 12))
    ]
    found = shares(wishes)
    assert sum(found.values()) == pytest.approx(TOTAL)
    for wish in wishes:
        count = sum(other.kind == wish.kind for other in wishes)
        assert found[wish.process] >= KEPT[wish.kind] / count - 1e-6


def test_a_writer_alone_at_work_has_nearly_everything() -> None:
    found = shares([Wish("w", WRITER, 100), Wish("a", WEB, 0), Wish("b", BOT, 0)])
    assert found["w"] == TOTAL - KEPT[WEB] - KEPT[BOT]


def test_what_nobody_wants_is_at_hand_for_writes_and_for_screens() -> None:
    found = shares([Wish("j", JOBS, 0), Wish("a", WEB, 1), Wish("b", BOT, 0)])
    assert found["a"] > 3 * KEPT[WEB], "a screen that asks more than the last ones waits for no new share"
    assert found["j"] > 3 * KEPT[WEB]


class Measured(RequestTurns):
    """A limiter that remembers the share it was given."""

    share = 0.0

    def lease(self, per_second: float, until: float) -> None:
        self.share = per_second
        super().lease(per_second, until)


def wants(turns: RequestTurns, count: int, lane: str = READS) -> None:
    turns._asked[lane] += count


async def in_use() -> float:
    async with transaction() as db:
        return float((await db.execute(text("SELECT sum(share) FROM rate_share"))).scalar_one())


@pytest.mark.usefixtures("database")
async def test_no_share_grows_before_another_one_is_given_back_and_a_dead_ones_returns() -> None:
    turns = [Measured(48) for _ in range(4)]
    processes = [Share(kind, one) for kind, one in zip((JOBS, WEB, WEB, BOT), turns, strict=True)]
    for _ in range(2):
        wants(turns[0], 1_000, WRITES)
        for process in processes:
            await process.beat()
            assert await in_use() <= TOTAL + 3
    assert turns[0].share == pytest.approx(TOTAL - KEPT[WEB] - KEPT[BOT])
    assert await in_use() == pytest.approx(TOTAL)
    for _ in range(3):
        wants(turns[0], 1_000, WRITES)
        wants(turns[1], 1_000)
        for process in reversed(processes):
            await process.beat()
            assert await in_use() <= TOTAL + 1e-6
    assert turns[1].share > 10
    assert turns[0].share > KEPT[WRITER]
    async with transaction() as db:
        await db.execute(
            text("UPDATE rate_share SET seen_at = now() - interval '7 seconds' WHERE process = :name"),
            {"name": processes[0].name},
        )
    wants(turns[1], 1_000)
    await processes[1].beat()
    assert turns[1].share > 30, "what the killed one had is there again"


async def sends(turns: RequestTurns) -> bool:
    """Return whether a request may go out now."""
    try:
        await turns.take(READS, "", asyncio.get_running_loop().time() + 1)
    except WaitTooLong:
        return False
    return True


@pytest.mark.usefixtures("database")
async def test_a_pause_of_everything_that_one_process_is_asked_for_is_kept_by_all() -> None:
    turns = [RequestTurns(48) for _ in range(3)]
    writer, web, late = (Share(kind, one) for kind, one in zip((JOBS, WEB, WEB), turns, strict=True))
    for process in (writer, web):
        await process.beat()
    assert [await sends(one) for one in turns[:2]] == [True, True]
    turns[0].pause(60)
    for process in (writer, web, late):
        await process.beat()
    assert [await sends(one) for one in turns] == [False, False, False]
    async with transaction() as db:
        told = (await db.execute(text("SELECT count(*) FROM rate_share WHERE paused_until IS NOT NULL"))).scalar_one()
        assert told == 1, "what was heard is not told on, or a pause would never end"
        await db.execute(text("UPDATE rate_share SET paused_until = now() - interval '1 second'"))
    fresh = RequestTurns(48)
    await Share(WEB, fresh).beat()
    assert await sends(fresh)
