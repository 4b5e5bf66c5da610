"""Identifies are counted across restarts, spaced out, and never exceed what Discord allows in a day."""

import pytest
from sqlalchemy import text

from gateways.discord.application import SessionStarts
from models import transaction
from services.guilds.gateway import identifies

pytestmark = pytest.mark.usefixtures("database")


async def were(count: int, hours_ago: float) -> None:
    async with transaction() as db:
        await db.execute(
            text("INSERT INTO identify (at) SELECT now() - make_interval(secs => :ago) FROM generate_series(1, :n)"),
            {"n": count, "ago": hours_ago * 3600},
        )


async def taken(shard_id: int | None = None) -> float:
    async with transaction() as db:
        return await identifies.take(db, shard_id)


async def learned(remaining: int = 1000, reset_after: float = 3600, concurrency: int = 1) -> None:
    async with transaction() as db:
        await identifies.learn(db, SessionStarts(1000, remaining, reset_after, concurrency, 1))


async def pause() -> float:
    async with transaction() as db:
        return await identifies.pause(db)


async def warning() -> str:
    async with transaction() as db:
        return await identifies.warning(db)


async def test_each_waits_for_the_one_before_it() -> None:
    assert await taken() == 0
    first, second = await taken(), await taken()
    assert 0 < first <= identifies.SPACING_SECONDS
    assert first < second <= 2 * identifies.SPACING_SECONDS


async def test_shards_of_one_lane_wait_for_each_other_and_those_of_others_do_not() -> None:
    await learned(concurrency=3)
    assert [await taken(shard) for shard in (0, 1, 2)] == [0, 0, 0]
    assert 0 < await taken(3) <= identifies.SPACING_SECONDS
    assert await taken(6) > identifies.SPACING_SECONDS
    assert 0 < await taken(4) <= identifies.SPACING_SECONDS


async def test_none_is_taken_once_the_day_is_used_up() -> None:
    await were(identifies.DAILY - identifies.KEPT_BACK - 1, 5)
    await taken()
    with pytest.raises(identifies.TooManyIdentifies):
        await taken()
    wait = await pause()
    assert 18 * 3600 < wait <= 19 * 3600, "until the first of them is a day old"


async def test_yesterdays_do_not_count() -> None:
    await were(identifies.DAILY, 24.1)
    assert await pause() == 0
    assert await taken() == 0


async def test_what_is_left_is_spread_over_the_rest_of_the_day() -> None:
    await were(100, 12)
    assert await pause() == 0
    await were(400, 0)
    wait = await pause()
    assert 90 < wait <= 12 * 3600 / 450


@pytest.mark.parametrize(("remaining", "waits"), [(900, False), (300, True), (10, True)])
async def test_discords_own_count_is_believed_where_it_is_less(remaining: int, waits: bool) -> None:
    await were(1, 0)
    await learned(remaining)
    found = await pause()
    assert (found > 0) is waits
    assert found <= 3600
    assert bool(await warning()) is waits


async def test_none_is_taken_of_the_reserve_that_discord_counts_however_it_was_used() -> None:
    await learned(identifies.KEPT_BACK + 2)
    await taken()
    await taken()
    with pytest.raises(identifies.TooManyIdentifies):
        await taken()
    assert "50 are left. The bot keeps them for a restart by you" in await warning()


async def test_discords_count_ends_with_its_day() -> None:
    await learned(0, reset_after=-1)
    assert await taken() == 0
    assert await warning() == ""


async def test_an_identify_before_the_clock_was_set_back_keeps_nobody_waiting() -> None:
    async with transaction() as db:
        await db.execute(text("INSERT INTO identify (at, lane) VALUES (now() + interval '1 year', 0)"))
    assert await taken() <= 60
