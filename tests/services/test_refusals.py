"""Refusals of all processes count together: none goes on asking a Discord that refuses too much."""

import pytest
from sqlalchemy import text

from gateways.refusals import ALLOWED, ALLOWED_TOGETHER, UNTOLD, Refusals
from models import transaction
from services import refusals

pytestmark = pytest.mark.usefixtures("database")


async def test_no_process_asks_on_once_all_together_were_refused_too_often() -> None:
    processes = [Refusals() for _ in range(8)]
    for process in processes:
        await refusals.share(process)
    refused = 0
    while asking := [process for process in processes if process.pause() == 0]:
        for process in asking:  # as fast as they can, and telling the others as late as they may
            while process.pause() == 0:
                process.add()
                refused += 1
        for process in processes:
            await refusals.share(process)
    assert ALLOWED_TOGETHER <= refused <= ALLOWED
    newcomer = Refusals()
    await refusals.share(newcomer)
    assert newcomer.pause() > 0, "a restart forgets nothing"
    async with transaction() as db:
        await db.execute(text("UPDATE refusal SET minute = minute - interval '12 minutes'"))
    for process in processes:
        await refusals.share(process)
    assert all(process.pause() == 0 for process in processes)


async def test_who_cannot_tell_the_others_stops_soon() -> None:
    process = Refusals()
    await refusals.share(process)
    for _ in range(UNTOLD):
        assert process.pause() == 0
        process.add()
    assert process.pause() > 0
    await refusals.share(process)
    assert process.pause() == 0
