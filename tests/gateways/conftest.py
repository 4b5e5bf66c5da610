"""What the gateways' tests share."""

from collections.abc import AsyncIterator

import pytest

from tests.gateways.wire import Wire, wire


@pytest.fixture
async def server() -> AsyncIterator[Wire]:
    """A local server that answers as the test says."""
    async with wire() as told:
        yield told
