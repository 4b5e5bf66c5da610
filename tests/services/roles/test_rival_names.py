"""Moves of rivals whose names are looked up: what another transaction has locked waits for the next turn."""

import asyncio
from typing import Any

import pytest
from sqlmodel import select

from models import RivalMove, now, transaction
from services.roles import rival_names
from tests.support.builders import a_server, snowflake
from tests.support.statements import waits_for_a_lock

pytestmark = pytest.mark.usefixtures("database")


async def claimed() -> list[int]:
    async with transaction() as db:
        search = await rival_names.claim(db)
        return [] if search is None else [move.id for move in search.moves]


async def test_moves_are_claimed_without_waiting_for_those_that_are_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rival_names, "MOST_MOVES", 2)
    async with transaction() as db:
        server = await a_server(db)
        moves = [
            RivalMove(
                server_id=server.id or 0, discord_id=snowflake(), role_id="7", taken=True, at=now(), next_at=now(),
                naming="open", against=True,
            )
            for _ in range(4)
        ]  # fmt: skip
        db.add_all(moves)
    first, second, third, locked = (move.id or 0 for move in moves)

    def lock(move_id: int) -> Any:
        return select(RivalMove.id).where(RivalMove.id == move_id).with_for_update()

    async with transaction() as db:
        await db.exec(lock(locked))
        claiming = asyncio.create_task(claimed())
        async with asyncio.timeout(60):
            while not claiming.done() and not await waits_for_a_lock():
                await asyncio.sleep(0.01)
        await db.exec(lock(first))
    assert await claiming == [first, second]
    assert await claimed() == [third, locked]
    assert await claimed() == []
