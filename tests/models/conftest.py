"""The fixture that tests of the database share: a process that uses the test's own one."""

from collections.abc import AsyncIterator

import pytest

import models


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[str]:
    """A migrated database of this test's own, which the process uses."""
    await models.use(database_url)
    yield database_url
    await models.use(None)
