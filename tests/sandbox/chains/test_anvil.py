"""One node as the sandbox starts it, and what is remembered of its heads."""

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.base.chain_table import CHAINS
from sandbox.chains import anvil, chain, replay
from sandbox.chains.anvil import Anvil, NodeGone
from sandbox.chains.chain import HEADS_KEPT, Chain
from sandbox.tools import find_anvil
from tests.conftest import ROOT


async def test_a_node_whose_port_another_chain_took_first_gets_another_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = find_anvil(ROOT / "data" / "tools")
    assert binary is not None
    first, second = (Anvil(binary, tmp_path / str(number), number, confirmations=2) for number in (11, 12))
    free = anvil._free_address  # pyright: ignore[reportPrivateUsage]
    try:
        await first.start(0, 1)
        addresses = iter(((first.host, first.port), free()))
        monkeypatch.setattr(anvil, "_free_address", lambda: next(addresses))
        await second.start(0, 1)
        assert [await node.call("eth_chainId") for node in (first, second)] == [hex(11), hex(12)]
    finally:
        await first.stop()
        await second.stop()


async def test_a_node_that_hangs_counts_as_one_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise `GET /control/world` would answer 500 while it hangs, and the sandbox would not start it again."""
    monkeypatch.setattr(anvil, "PATIENCE_SECONDS", 1.0)
    binary = find_anvil(ROOT / "data" / "tools")
    assert binary is not None
    node = Anvil(binary, tmp_path, 11, confirmations=2)
    await node.start(0, 1)
    process = node._process  # pyright: ignore[reportPrivateUsage]
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    # The node may still answer for a moment after the signal was sent.
    _, status = await asyncio.to_thread(os.waitpid, process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    try:
        with pytest.raises(NodeGone):
            await node.call("eth_chainId")
    finally:
        os.kill(process.pid, signal.SIGCONT)
        await node.stop()


class Node:
    """A node with this head, which mines on request."""

    head = 5

    async def call(self, method: str, *params: Any) -> Any:
        if method == "anvil_mine":
            self.head += int(params[0], 16)
        return hex(self.head)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chain:
    """A chain whose clock is `clock.now`."""
    made = Chain(CHAINS["base"], "http://localhost", tmp_path, Path("anvil"))
    monkeypatch.setattr(made, "node", Node())
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(chain, "time", clock)
    return clock


async def test_a_head_that_is_looked_at_again_grows_old_all_the_same(base: Chain, clock: SimpleNamespace):
    await base.note_head()
    clock.now = base.facts.block_seconds - 1
    assert await base.note_head() == 5
    clock.now += 2
    await base.freshen()
    assert base.head == 6
    base.journal.close()


async def test_where_a_stale_node_stopped_is_not_forgotten_by_looking(base: Chain, clock: SimpleNamespace):
    await base.note_head()
    clock.now = 1.0
    await base.mine(1)
    for _ in range(HEADS_KEPT + 1):
        await base.note_head()
    assert (base.head_at(0.5), base.head_at(2.0)) == (5, 6)
    base.journal.close()


async def test_a_node_that_the_machine_has_no_room_for_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tries, started = iter((OSError("no process is left"), None)), asyncio.Event()

    async def start(one: Chain) -> None:
        if (fault := next(tries)) is not None:
            raise fault
        started.set()
        one.running.set()

    async def ended() -> None:
        if started.is_set():
            await asyncio.Event().wait()

    monkeypatch.setattr(replay, "start", start)
    monkeypatch.setattr(replay, "PAUSE_SECONDS", 0.0)
    made = Chain(CHAINS["base"], "http://localhost", tmp_path, Path("anvil"))
    monkeypatch.setattr(made.node, "ended", ended)
    keeper = asyncio.create_task(replay.keep_running(made))
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait({keeper, waiting}, return_when=asyncio.FIRST_COMPLETED)
    assert not keeper.done(), "it keeps the node running"
    keeper.cancel()
    await asyncio.gather(keeper, waiting, return_exceptions=True)
    made.journal.close()
