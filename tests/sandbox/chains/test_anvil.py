"""One node as the sandbox starts it."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from sandbox.chains import anvil
from sandbox.chains.anvil import Anvil, NodeGone
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
