"""New blocks are announced by a socket: a follower polls at once, and by the clock where no socket answers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import pytest

from gateways import close_gateways, gateways
from gateways.transport.errors import ProviderError
from jobs.following import head_listener
from jobs.following.follower import Follower
from jobs.following.head_listener import HeadListener
from services.runtime.task_cancellation import stop
from services.triggers.transfer_poller import UnreadableTransfers
from settings import settings
from tests.conftest import free_port
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given

Start = Callable[[], None]


@pytest.fixture
def nobodys_socket() -> bool:
    """Whether the settings name a socket that nobody serves, so that the follower has to poll by the clock."""
    return False


@pytest.fixture
async def start(
    town: Town, sandbox_url: str, nobodys_socket: bool, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Start]:
    """A function that starts Base's follower: it polls once a day with the sandbox's socket, and often without one."""
    # Set before anything that reads these starts.
    port, seconds = (free_port(), 0.1) if nobodys_socket else (urlsplit(sandbox_url).port, 100_000)
    monkeypatch.setenv("RPC_WS_BASE", f"ws://localhost:{port}/rpc/base")
    monkeypatch.setenv("FOLLOW_SECONDS", str(seconds))
    monkeypatch.setattr(head_listener, "LONGEST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(head_listener, "RESTART_SECONDS", 0.2)
    settings.cache_clear()
    await close_gateways()
    running: list[asyncio.Task[None]] = []

    def begin() -> None:
        called = asyncio.Event()
        parts = (Follower("base", called=called), HeadListener("base", called))
        running.extend(asyncio.create_task(part.run()) for part in parts)

    yield begin
    await stop(*running)


async def test_a_purchase_is_noticed_when_its_block_is_announced(town: Town, engine: Engine, start: Start) -> None:
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        since = await town.mark()
        start()
        await _asked(town, since, "WS")
        await town.buys("carol")
        await given(town)


async def test_a_socket_that_breaks_is_taken_up_again(town: Town, engine: Engine, start: Start) -> None:
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        await town.break_("500", "rpc:base")
        since = await town.mark()
        start()
        await _asked(town, since, "GET")
        await town.heal()
        await town.buys("carol")
        await given(town)


@pytest.mark.parametrize("nobodys_socket", [True])
async def test_without_the_socket_the_follower_looks_by_the_clock(town: Town, engine: Engine, start: Start) -> None:
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        start()
        await town.buys("carol")
        await given(town)


async def test_a_socket_that_nobody_answers_is_a_fault_told_without_its_address(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RPC_WS_BASE", f"ws://localhost:{free_port()}/secret-key")
    settings.cache_clear()
    await close_gateways()
    with pytest.raises(ProviderError, match="no connection") as told:
        await anext(gateways().heads.follow("base"))
    assert "secret" not in str(told.value)
    assert not gateways().heads.offered("polygon")


async def test_a_socket_that_closes_after_each_subscription_is_opened_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses = list[float]()

    async def closing(*_: object) -> AsyncIterator[None]:
        yield
        raise UnreadableTransfers("Base (socket): no connection")

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            raise asyncio.CancelledError

    monkeypatch.setattr(head_listener.transfer_poller, "new_blocks", closing)
    monkeypatch.setattr(asyncio, "sleep", pause)
    with pytest.raises(asyncio.CancelledError):
        await HeadListener("base", asyncio.Event()).run()
    assert pauses == [1.0, 2.0, 4.0, 8.0]
    assert [one.getMessage() for one in caplog.records] == [
        "block subscription failed, falling back to polling reason=Base (socket): no connection times=1"
    ]


async def _asked(town: Town, since: int, method: str) -> None:
    """Wait until the socket was requested: GET while it is refused, WS once a message goes over it."""

    async def came() -> bool:
        return any(one["method"] == method for one in await town.requests(since, "rpc:base"))

    await until(came)
