"""The web process goes on storing provider states after the database was away."""

from typing import Any

import pytest

from app import provider_state_writer
from gateways.transport import provider_reports
from models import transaction
from services.health import provider_records
from services.runtime import counters
from tests.bot.test_events import AWAY
from tests.jobs.conftest import product as product
from tests.jobs.town import until


async def count_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the writer run until the database has the count of one answer."""
    monkeypatch.setattr(provider_state_writer, "PAUSE_SECONDS", 0.01)
    provider_reports.read_off_counts()

    async def written() -> bool:
        async with transaction() as db:
            return (await counters.totals(db)).get((counters.ANSWERS, "base:0", provider_reports.OK)) == 1

    async with provider_state_writer.noting():
        provider_reports.count("base:0", provider_reports.OK)
        await until(written)


@pytest.mark.parametrize("fault", AWAY, ids=lambda fault: type(fault).__name__)
async def test_answers_that_came_while_the_database_was_away_are_counted_later(
    product: None, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    tried: list[str] = []

    def first_away() -> Any:
        tried.append("tried")
        if len(tried) == 1:
            raise fault
        return transaction()

    monkeypatch.setattr(provider_records, "transaction", first_away)
    await count_one_answer(monkeypatch)
    assert len(tried) > 1


async def test_the_writer_starts_again_after_an_error_of_our_own(
    product: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, faults = provider_records.keep, iter([ValueError("nobody foresaw this")])

    async def failing_once(*given: Any) -> None:
        for fault in faults:
            raise fault
        await keep(*given)

    monkeypatch.setattr(provider_records, "keep", failing_once)
    await count_one_answer(monkeypatch)
