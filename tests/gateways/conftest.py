"""Fixtures for the tests of the gateways."""

from collections.abc import AsyncIterator

import pytest

from tests.gateways.evm_lab import Front, front, rpc
from tests.gateways.wire import Wire, wire


@pytest.fixture
async def server() -> AsyncIterator[Wire]:
    """A local server that answers as the test says."""
    async with wire() as told:
        yield told


@pytest.fixture
async def end(node: str) -> AsyncIterator[Front]:
    """A front end of the EVM node that the test's own module starts, one block later."""
    await rpc(node, "anvil_mine", "0x1")
    async with front(node) as made:
        yield made


@pytest.fixture
def patience(request: pytest.FixtureRequest) -> float:
    """The seconds allowed for an answer: enough for a busy machine, and few where the server hangs."""
    told = getattr(request.node, "callspec", None)
    return 0.5 if told is not None and "hang" in [one for one in told.params.values() if isinstance(one, str)] else 10.0
