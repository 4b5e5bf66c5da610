"""The soak's own verdict: what it must find, and what it must let pass."""

from datetime import UTC, datetime

import pytest

from tests.system.soak.judge import REFUSALS_BORNE, REFUSALS_WITHIN, Write, faults, refusals
from tests.system.soak.truth import Timeline

PAIR = ("member", "role")
BEGAN = 1_700_000_000.0
EARNED, SOLD = BEGAN + 5, BEGAN + 20


def given(after: float) -> Write:
    return Write(BEGAN + after, PAIR, gives=True)


def taken(after: float) -> Write:
    return Write(BEGAN + after, PAIR, gives=False)


@pytest.fixture
def timeline() -> Timeline:
    """Earned after 5 seconds, sold after 20."""
    made = Timeline()
    made.note(BEGAN, {PAIR: False})
    made.note(EARNED, {PAIR: True})
    made.note(SOLD, {PAIR: False})
    return made


def test_one_write_for_each_change_is_right(timeline: Timeline) -> None:
    assert faults([given(6), taken(21)], timeline, []) == []


def test_what_was_taken_while_it_was_earned_is_found(timeline: Timeline) -> None:
    timeline.changes[PAIR] = [(BEGAN - 1000, True)]
    assert ["TAKEN THOUGH HELD" in said for said in faults([given(6), taken(15)], timeline, [])] == [True]


def test_what_was_written_twice_is_found(timeline: Timeline) -> None:
    for again in ([given(6), given(7)], [given(6), taken(21), taken(22)]):
        assert ["written twice" in said for said in faults(again, timeline, [])] == [True]


def test_only_who_leaves_between_the_look_and_the_removal_may_be_asked_for_what_went_with_the_membership(
    timeline: Timeline,
) -> None:
    away = [("member", BEGAN + 8), ("member", BEGAN + 8.1)]
    assert faults([given(6), taken(21)], timeline, away) == []
    for again in ([given(6), taken(21), taken(22)], [given(6), taken(29)]):
        assert ["written twice" in said for said in faults(again, timeline, away)] == [True]


def test_a_write_that_a_slow_discord_repeats_is_let_pass(timeline: Timeline) -> None:
    slow = [(BEGAN + 5, BEGAN + 7)]
    assert faults([given(6), given(9), taken(21)], timeline, [], slow) == []


def refused(count: int, within: float, status: int = 403) -> list[dict[str, object]]:
    times = (datetime.fromtimestamp(BEGAN + at * within / count, UTC).isoformat() for at in range(count))
    return [{"target": "discord", "status": status, "time": moment} for moment in times]


def test_more_refusals_than_a_tenth_of_what_discord_bears_are_found() -> None:
    assert len(refusals(refused(REFUSALS_BORNE + 1, REFUSALS_WITHIN))) == 1
    assert refusals(refused(REFUSALS_BORNE, REFUSALS_WITHIN)) == []
    assert refusals(refused(2 * REFUSALS_BORNE, 3 * REFUSALS_WITHIN)) == []
    assert refusals(refused(2 * REFUSALS_BORNE, REFUSALS_WITHIN, status=404)) == []
