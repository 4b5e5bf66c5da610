"""A shard waits for the database without delaying the other shards."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from bot.gateway import shard_connection, shard_keeper
from bot.gateway.shard_connection import Connection, Socket
from bot.gateway.shard_keeper import ShardKeeper
from services.guilds.gateway.shards import BotProcess, ShardPart
from services.runtime.task_cancellation import stop
from tests.bot.test_events import AWAY
from tests.jobs.town import until


async def nothing(*_: object) -> None:
    pass


@pytest.mark.parametrize("fault", AWAY, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("place", ["before it connects", "when it identifies"])
async def test_a_shard_asks_again_whether_it_may_identify(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, place: str
) -> None:
    monkeypatch.setattr(shard_connection, "FIRST_PAUSE", 0.01)
    asked: list[str] = []

    async def asks(where: str) -> None:
        asked.append(where)
        if asked == ["before it connects", "when it identifies"][: len(asked)] and where == place:
            raise fault

    async def identifies(*_: object, **more: object) -> Any:
        await asks("when it identifies")
        await asyncio.Event().wait()

    monkeypatch.setattr(Socket, "from_client", identifies)
    connection = Connection(None, 0, nothing, lambda _: asks("before it connects"), lambda *_: None)
    connection.start()
    assert connection.task is not None

    async def asked_again() -> bool:
        assert connection.task is not None
        assert not connection.task.done(), connection.task
        return asked.count(place) == 2 and asked[-1] == "when it identifies"

    try:
        await until(asked_again)
    finally:
        await stop(connection.task)


@pytest.mark.parametrize("fault", AWAY, ids=lambda fault: type(fault).__name__)
async def test_a_shard_whose_hand_over_cannot_be_stored_is_left_to_its_lease(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def away() -> Any:
        raise fault

    monkeypatch.setattr(shard_keeper, "transaction", away)
    removed: list[Any] = []
    guild = SimpleNamespace(id=1 << 22, unavailable=False)
    state = SimpleNamespace(_remove_guild=removed.append)
    keeper = ShardKeeper(SimpleNamespace(guilds=[guild], _connection=state), BotProcess("here", 1, "x"), ShardPart("2"))
    keeper.count = 2
    for number in range(2):
        keeper.connections[number] = one = Connection(None, number, nothing, nothing, lambda *_: None)
        one.is_up = number == 1
        one.settled = shard_connection.ResumePoint("session", 1, "ws://x")
    await keeper._hand_over()
    assert (set(keeper.connections), removed) == ({0}, [guild])
