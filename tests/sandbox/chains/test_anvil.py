"""One node as the sandbox starts it."""

from pathlib import Path

import pytest

from sandbox.chains import anvil
from sandbox.chains.anvil import Anvil
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
