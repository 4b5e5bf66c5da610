"""What the gateways' tests share."""

from collections.abc import AsyncIterator, Iterator

import pytest

from gateways.evm.rpc import node_limits
from tests.gateways.wire import Wire, wire


@pytest.fixture(autouse=True)
def nothing_known_of_nodes() -> Iterator[None]:
    """Each test's readers find out anew what nodes give."""
    node_limits.forget()
    yield
    node_limits.forget()


@pytest.fixture
async def server() -> AsyncIterator[Wire]:
    """A local server that answers as the test says."""
    async with wire() as told:
        yield told


@pytest.fixture
def patience(request: pytest.FixtureRequest) -> float:
    """Seconds for an answer: enough for a busy machine, and few where the test lets a server hang."""
    told = getattr(request.node, "callspec", None)
    return 0.5 if told is not None and "hang" in [one for one in told.params.values() if isinstance(one, str)] else 10.0
