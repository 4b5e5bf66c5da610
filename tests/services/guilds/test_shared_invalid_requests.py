"""Refusals of all processes count together: when Discord refuses too much, none of them goes on asking."""

import pytest
from sqlalchemy import text

from gateways.discord.invalid_requests import ALLOWED, ALLOWED_TOGETHER, GUILD_ALLOWED, UNTOLD, Refusals
from models import transaction
from services.guilds import shared_invalid_requests

pytestmark = pytest.mark.usefixtures("database")


async def test_no_process_asks_on_once_all_together_were_refused_too_often() -> None:
    processes = [Refusals() for _ in range(8)]
    for process in processes:
        await shared_invalid_requests.share(process)
    refused = 0
    while asking := [process for process in processes if process.pause() == 0]:
        for process in asking:  # they ask as fast as they can, and share their counts as late as they may
            while process.pause() == 0:
                process.add()
                refused += 1
        for process in processes:
            await shared_invalid_requests.share(process)
    assert ALLOWED_TOGETHER <= refused <= ALLOWED
    newcomer = Refusals()
    await shared_invalid_requests.share(newcomer)
    assert newcomer.pause() > 0, "a restart forgets nothing"
    async with transaction() as db:
        await db.execute(text("UPDATE refusal SET minute = minute - interval '12 minutes'"))
    for process in processes:
        await shared_invalid_requests.share(process)
    assert all(process.pause() == 0 for process in processes)


async def test_who_cannot_tell_the_others_stops_soon() -> None:
    process = Refusals()
    await shared_invalid_requests.share(process)
    for _ in range(UNTOLD):
        assert process.pause() == 0
        process.add()
    assert process.pause() > 0
    await shared_invalid_requests.share(process)
    assert process.pause() == 0


async def refused(process: Refusals, guild: str, times: int) -> None:
    for _ in range(times):
        process.add(guild)
    await shared_invalid_requests.share(process)


async def rests() -> list[int]:
    async with transaction() as db:
        found = await db.execute(
            text(
                "SELECT round(extract(epoch FROM rests_until - now()) / 60) FROM guild_refusal "
                "WHERE guild_id = '7' AND rests_until IS NOT NULL"
            )
        )
        return [int(minutes) for (minutes,) in found.all()]


async def test_a_guild_in_which_too_much_is_refused_rests_alone_and_each_time_longer() -> None:
    writer, web = Refusals(), Refusals()
    await refused(web, "7", GUILD_ALLOWED - 1)
    assert web.guild_pause("7") == 0
    await refused(writer, "7", 1)
    await shared_invalid_requests.share(web)
    for process in (writer, web):
        assert process.guild_pause("7") > 500
        assert process.guild_pause("8") == process.pause() == 0
    for minutes in (10, 30, 120, 120):
        assert await rests() == [minutes]
        await refused(writer, "7", GUILD_ALLOWED)
        assert await rests() == [minutes], "what was on its way makes it no longer"
        async with transaction() as db:
            await db.execute(text("UPDATE guild_refusal SET rests_until = now()"))
        await shared_invalid_requests.share(writer)
        assert writer.guild_pause("7") == 0
        await refused(writer, "7", GUILD_ALLOWED)


async def test_a_guilds_refusals_of_more_than_ten_minutes_ago_count_no_longer() -> None:
    writer = Refusals()
    await refused(writer, "7", GUILD_ALLOWED - 1)
    async with transaction() as db:
        await db.execute(text("UPDATE guild_refusal SET began_at = now() - interval '11 minutes'"))
    await refused(writer, "7", 1)
    assert await rests() == []


async def test_a_guild_rests_before_its_count_is_shared() -> None:
    writer = Refusals()
    for _ in range(GUILD_ALLOWED):
        assert writer.guild_pause("7") == 0
        writer.add("7")
    assert writer.guild_pause("7") > 0
