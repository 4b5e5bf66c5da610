"""Stored times, and times compared with them, come from the database's clock, whatever this machine's clock says."""

from datetime import UTC, datetime, timedelta, tzinfo

import pytest

from models import corrected, now, reading, transaction
from models.db import clock
from tests.services.conftest import database as database

pytestmark = pytest.mark.usefixtures("database")

AHEAD = timedelta(minutes=7)


class Early(datetime):
    """The clock of a machine that is ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Early":
        ahead = datetime.now(tz or UTC) + AHEAD
        return cls.combine(ahead.date(), ahead.timetz())


def off_by() -> timedelta:
    return abs(now() - datetime.now(UTC))


async def test_the_time_is_the_databases_and_what_this_machine_noted_is_moved_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "datetime", Early)
    assert off_by() > timedelta(minutes=6)
    async with transaction():
        pass
    assert off_by() < timedelta(minutes=1)
    assert abs(corrected(Early.now(UTC)) - datetime.now(UTC)) < timedelta(minutes=1)


async def test_a_clock_that_somebody_sets_is_measured_by_the_next_who_asks_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with reading():
        pass
    monkeypatch.setattr(clock, "datetime", Early)
    async with reading():
        pass
    assert off_by() < timedelta(minutes=1)


def test_two_clocks_that_agree_as_far_as_one_can_know_never_move_against_each_other() -> None:
    for seconds in (0.5, 5.0):
        clock.measured(datetime.now(UTC) - timedelta(seconds=seconds), seconds)
        assert clock.corrected(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 1, tzinfo=UTC)
    clock.measured(datetime.now(UTC) + timedelta(seconds=30), 0.5)
    moved = corrected(datetime(2026, 1, 1, tzinfo=UTC))
    assert moved > datetime(2026, 1, 1, 0, 0, 29, tzinfo=UTC)
    clock.measured(datetime.now(UTC) + timedelta(seconds=31), 5.0)
    assert corrected(datetime(2026, 1, 1, tzinfo=UTC)) == moved, "the way of the answer explains the rest"


def test_it_is_measured_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [clock.is_due(), clock.is_due()] == [True, False]
    monkeypatch.setattr(clock, "MEASURED_EVERY", 0.0)
    assert clock.is_due()
