"""When the writer reads the intended changes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs import role_writer
from jobs.role_writer import AT_ONCE, RoleWriter
from models.db.session import Question
from services.roles import outbox, write_results
from services.roles.outbox import Intent, WriteOutcome, WriteResult
from services.roles.writer_lease import Lease
from services.runtime.task_cancellation import stop

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Held(Lease):
    """A lease that does not expire, over a ledger that always has more to do."""

    def __init__(self, most: int) -> None:
        self.since = NOW
        self.most = most
        """The most role changes that one read returns."""
        self.rooms: list[int] = []
        """The number of role changes that each read asked for."""
        self.looked = asyncio.Event()

    async def ask(self, question: Question) -> list[tuple[Any, ...]]:
        room = question[1]["limit"]
        assert isinstance(room, int)
        self.rooms.append(room)
        self.looked.set()
        first = AT_ONCE * len(self.rooms)
        return [
            (first + place, 1, f"guild {place}", str(place), "2", "Role", True, NOW, 0, {}, False, None)
            for place in range(min(room, self.most))
        ]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> asyncio.Semaphore:
    """A semaphore: each release ends one change in progress. Pauses do not end."""
    monkeypatch.setattr(role_writer, "IDLE_SECONDS", 1_000.0)
    gate = asyncio.Semaphore(0)

    async def slowly(_: RoleWriter, _intent: Intent, _since: datetime) -> None:
        await gate.acquire()

    monkeypatch.setattr(RoleWriter, "_carry_out", slowly)
    return gate


@pytest.fixture
async def held(most: int) -> Held:
    return Held(most)


@pytest.fixture
async def called(held: Held, ends: asyncio.Semaphore) -> AsyncIterator[asyncio.Event]:
    """The event that calls a writer, with a writer at work."""
    event = asyncio.Event()
    working = asyncio.create_task(RoleWriter(event)._write(held))
    yield event
    await stop(working)


async def looks(held: Held, times: int) -> None:
    """Wait until the writer has read so often, and check that it does not read once more."""
    async with asyncio.timeout(30):
        while len(held.rooms) < times:
            held.looked.clear()
            await held.looked.wait()
    await asyncio.sleep(0.05)
    assert len(held.rooms) == times


@pytest.mark.parametrize("most", [1])
async def test_a_call_is_heard_while_a_role_is_being_written(held: Held, called: asyncio.Event) -> None:
    await looks(held, 1)
    called.set()
    await looks(held, 2)
    assert held.rooms == [AT_ONCE, AT_ONCE - 1]


@pytest.mark.parametrize("most", [AT_ONCE])
async def test_a_call_waits_while_there_is_no_room_for_further_changes(
    held: Held, called: asyncio.Event, ends: asyncio.Semaphore
) -> None:
    await looks(held, 1)
    called.set()
    await looks(held, 1)
    ends.release()
    await looks(held, 2)
    assert held.rooms == [AT_ONCE, 1], "who is done calls for the next"


@pytest.mark.parametrize("result", WriteResult)
async def test_no_change_is_remembered_once_its_result_is_in_the_ledger(
    monkeypatch: pytest.MonkeyPatch, result: WriteResult
) -> None:
    async def sent(*_: object, **__: object) -> WriteOutcome:
        return WriteOutcome(result)

    async def recorded(*_: object) -> None:
        pass

    monkeypatch.setattr(outbox, "carry_out", sent)
    monkeypatch.setattr(write_results, "record", recorded)
    monkeypatch.setattr(role_writer, "transaction", nullcontext)
    writer = RoleWriter(asyncio.Event())
    for attempts in (0, 1):
        await writer._carry_out(Intent(1, 1, "1", "2", "3", "Role", True, NOW, attempts, {}), NOW)
    assert writer.tried == set()


async def test_a_lease_forgets_what_was_intended_before_it(ends: asyncio.Semaphore) -> None:
    held, writer = Held(0), RoleWriter(asyncio.Event())
    writer.tried = {(1, NOW - timedelta(seconds=1)), (2, NOW)}
    working = asyncio.create_task(writer._write(held))
    await held.looked.wait()
    await stop(working)
    assert writer.tried == {(2, NOW)}
