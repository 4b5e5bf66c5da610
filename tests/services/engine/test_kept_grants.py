"""What is known of a grant besides the decision: its membership has ended, and whether its line changes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateways.discord.types import GuildMember
from services.engine.decide import Action, Decision, GrantFacts, changes_nothing, keeps_differently, left_behind

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HELD = GrantFacts("role", "held", (1,))
HOUR = timedelta(hours=1)
GIVEN = GrantFacts("role", "held", (1,), created_at=NOW - HOUR)
"""A role that was given an hour ago."""


def member(joined: datetime | None, *, roles: frozenset[str] = frozenset(), read: datetime | None = NOW) -> GuildMember:
    return GuildMember("1", "ada", None, None, None, roles, False, joined_at=joined, read_at=read)


@pytest.mark.parametrize(
    ("grant", "live", "behind"),
    [
        (GIVEN, member(NOW - HOUR / 2), True),
        (replace(GIVEN, state="lost"), member(NOW - HOUR / 2), True),
        (GIVEN, member(NOW - HOUR / 2, roles=frozenset({"role"})), False),
        (GIVEN, member(NOW - 2 * HOUR), False),
        (GIVEN, member(NOW - HOUR), False),
        (replace(GIVEN, state="giving"), member(NOW - HOUR / 2), False),
        (replace(GIVEN, state="taking"), member(NOW - HOUR / 2), False),
        (replace(GIVEN, created_at=None), member(NOW - HOUR / 2), False),
        (GIVEN, member(None), False),
        (GIVEN, member(NOW - HOUR / 2, read=None), False),
    ],
    ids=["joined after the gift", "lost", "has it", "joined before", "at the same time", "being given", "being taken",
         "no time of the gift", "no time of joining", "no time of the read"],
)  # fmt: skip
def test_a_role_ended_with_an_earlier_membership_only_if_all_times_say_so(
    grant: GrantFacts, live: GuildMember, behind: bool
) -> None:
    assert left_behind(grant, live, NOW) is behind


@pytest.mark.parametrize(
    ("grant", "differently"),
    [
        (HELD, False),
        (replace(HELD, rule_ids=(1, 2)), True),
        (replace(HELD, no_since=NOW), True),
        (replace(HELD, first_no="{}"), True),
        (replace(HELD, gift=True), True),
        (replace(HELD, held_back=True), True),
        (replace(HELD, never_given=True), True),
    ],
    ids=["the same", "other rules", "a no before", "a no to confirm", "a gift", "held back", "never given"],
)
def test_a_role_that_stays_is_written_only_where_its_line_changes(grant: GrantFacts, differently: bool) -> None:
    keep = Decision("role", Action.KEEP, (1,))
    assert keeps_differently(keep, grant) is differently
    assert changes_nothing(keep, [replace(HELD, role_id="another"), grant]) is not differently


@pytest.mark.parametrize("action", Action)
def test_only_a_clear_answer_that_gives_and_takes_nothing_changes_nothing(action: Action) -> None:
    assert changes_nothing(Decision("role", action, (1,)), [HELD]) is (action in {Action.NONE, Action.KEEP})
    assert not changes_nothing(Decision("role", action, (1,), doubtful=True), [HELD])
    assert changes_nothing(Decision("role", action, (1,)), []) is (action is Action.NONE)
