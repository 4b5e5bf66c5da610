"""The heartbeat continues after the database was away."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bot import heartbeat
from bot.heartbeat import Heartbeat
from gateways.discord.application import SessionStarts
from models import transaction
from services.guilds.gateway import identifies
from services.health import provider_records
from services.runtime.task_cancellation import stop
from tests.bot.test_events import AWAY
from tests.jobs.conftest import product as product
from tests.jobs.town import until

pytestmark = pytest.mark.usefixtures("product")
LIMIT = SessionStarts(total=1000, remaining=742, reset_after=60.0, max_concurrency=1)


@pytest.fixture(params=AWAY, ids=lambda fault: type(fault).__name__)
def tries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The transactions that the heartbeat tries; the first one finds no database."""
    tried: list[str] = []

    def first_away() -> Any:
        tried.append("tried")
        if len(tried) == 1:
            raise request.param
        return transaction()

    for module in (heartbeat, provider_records):
        monkeypatch.setattr(module, "transaction", first_away)
    return tried


def of_a_bot() -> Heartbeat:
    """Return the heartbeat of a bot that has lost its connection."""
    keeper = SimpleNamespace(
        connections={}, down=None, stands_by=False, trouble_elsewhere=None, process=SimpleNamespace(name="here:1:bot")
    )
    bot: Any = SimpleNamespace(is_ready=lambda: False)
    events: Any = SimpleNamespace(untold=False)
    unreadable: Any = SimpleNamespace(counts=dict, counted=lambda _: None)
    beating = Heartbeat(bot, events, unreadable, keeper)  # pyright: ignore[reportArgumentType]
    beating.met = True
    return beating


async def goes_on(task: Callable[[Heartbeat], asyncio.Task[None]], tries: list[str]) -> None:
    """Wait until the task has asked the database again."""
    beating = of_a_bot()

    async def asked_again() -> bool:
        assert not task(beating).done(), task(beating)
        return len(tries) > 2

    try:
        await until(asked_again)
    finally:
        await stop(*beating.tasks())


async def test_the_state_is_written_again_after_the_database_was_away(
    tries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "PAUSE_SECONDS", 0.01)
    await goes_on(lambda beating: beating.task, tries)


async def test_the_identifies_are_counted_again_after_the_database_was_away(
    tries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def starts(_: object) -> SessionStarts:
        return LIMIT

    async def nothing(_: Heartbeat) -> None:
        pass

    monkeypatch.setattr(identifies, "read_discords_count", starts)
    monkeypatch.setattr(Heartbeat, "write", nothing)
    monkeypatch.setattr(heartbeat, "COUNTED_SECONDS", 0.01)
    await goes_on(lambda beating: beating.left, tries)


async def test_a_reason_that_could_not_be_stored_is_stored_the_next_time(tries: list[str]) -> None:
    await heartbeat.tell("no connection")
    await heartbeat.tell("no connection")
    async with transaction() as db:
        assert (await provider_records.states(db))[provider_records.BOT].reason == "no connection"
