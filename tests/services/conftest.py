"""The fixture that tests of services share: a process that uses the test's own database."""

from collections.abc import AsyncIterator

import pytest

import models
from gateways import close_gateways


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[str]:
    """A fresh, migrated database behind `models.transaction`."""
    await models.use(database_url)
    yield database_url
    await close_gateways()
    await models.use(None)
