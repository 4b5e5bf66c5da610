"""A town whose collection is counted."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from services.collections.census import count_by_transfers
from tests.jobs.town import Town, a_town


@pytest.fixture
async def town(product: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town owned by ada, where carol holds two tokens and dave one, and only carol has proved her wallet."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        await made.all_buy("carol", "carol", "dave")
        await made.prove("carol")
        yield made


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause before a failed step is retried."""
    monkeypatch.setattr(count_by_transfers, "FIRST_PAUSE", timedelta(0))
