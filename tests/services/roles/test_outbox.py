"""Which role changes the writer gets, in which order, and at what cost for the database."""

import json
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from models import reading, transaction
from services.roles import outbox
from services.roles.outbox import Intent

pytestmark = pytest.mark.usefixtures("database")


async def guilds(count: int, each: int, *, state: str = "giving") -> None:
    """Store `count` guilds (ids from 1), each with a role, an active rule for it, and `each` open changes."""
    async with transaction() as db:
        await db.execute(
            text(
                "INSERT INTO server (id, discord_id, name, description, bot_invited, created_at, protected_members, "
                "protected_roles) SELECT n, 'g' || n, 'G', '', true, now(), '{}', '{}' FROM generate_series(1, :n) n"
            ),
            {"n": count},
        )
        await db.execute(
            text(
                "INSERT INTO rule (server_id, name, role_id, role_name, role_color, expression, verification_type, "
                "contract_address, blockchain, min_tokens, token_ids, removal_mode, removal_hours, state, created_by, "
                "created_at, updated_at) SELECT n, 'R', '7', 'Holder', '#000000', '{}', 'basic', '', 'base', 1, '{}', "
                "'now', 0, 'active', '0', now(), now() FROM generate_series(1, :n) n"
            ),
            {"n": count},
        )
        await db.execute(
            text(
                'INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, '
                "intended_at, next_at, attempts, created_at, updated_at) SELECT s, 'p' || m, '7', ARRAY[1], :state, "
                "false, '{}', now(), now(), 0, now(), now() FROM generate_series(1, :n) s, generate_series(1, :m) m"
            ),
            {"n": count, "m": each, "state": state},
        )


GIVE_ANOTHER = """
    WITH another AS (
        INSERT INTO rule (server_id, name, role_id, role_name, role_color, expression, verification_type,
            contract_address, blockchain, min_tokens, token_ids, removal_mode, removal_hours, state, created_by,
            created_at, updated_at)
        SELECT server_id, 'S', '8', 'Collector', role_color, expression, verification_type, contract_address,
            blockchain, 5, token_ids, removal_mode, removal_hours, state, created_by, created_at, updated_at
        FROM rule RETURNING id)
    INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, intended_at, next_at,
        attempts, created_at, updated_at)
    SELECT 1, 'p1', '8', ARRAY[id], 'giving', false, '{}', now(), now(), 0, now(), now() FROM another
"""


async def change(statement: str, **values: object) -> None:
    async with transaction() as db:
        await db.execute(text(statement), values)


async def asked(limit: int, busy: Collection[int] = (), resting: Collection[str] = (), after: int = 0) -> list[Intent]:
    async with reading() as db:
        (rows,) = await db.together(outbox.question(limit, busy, resting, after))
    return outbox.answered(rows)


def servers(found: list[Intent]) -> list[int]:
    return [intent.server_id for intent in found]


async def test_each_guild_has_its_turn_before_any_has_its_second() -> None:
    await guilds(3, 10)
    assert servers(await asked(7)) == [1, 2, 3, 1, 2, 3, 1]


async def test_the_turns_go_on_after_the_guild_that_had_the_last_one() -> None:
    await guilds(5, 10)
    assert servers(await asked(2)) == [1, 2]
    assert servers(await asked(2, after=2)) == [3, 4]
    assert servers(await asked(2, after=4)) == [5, 1]


async def test_a_guild_that_rests_and_one_without_the_bot_are_left_out() -> None:
    await guilds(4, 3)
    await change("UPDATE server SET bot_invited = false WHERE id = 2")
    await change(
        "INSERT INTO guild_refusal (guild_id, began_at, count, rests, rests_until) "
        "VALUES ('g3', now(), 0, 1, now() + interval '1 minute')"
    )
    assert set(servers(await asked(16, resting=["g1"]))) == {4}


async def test_paused_rules_stopped_removals_and_screened_members_wait() -> None:
    await guilds(3, 2)
    await change("UPDATE rule SET state = 'paused' WHERE server_id = 1")
    await change("UPDATE \"grant\" SET state = 'taking' WHERE server_id = 2")
    await change(
        "INSERT INTO breaker (server_id, role_id, tripped_at, would_lose, holders) VALUES (2, '7', now(), 9, 10)"
    )
    await change(
        "INSERT INTO member (server_id, discord_id, name, roles, pending, bot, seen_at) "
        "VALUES (3, 'p1', 'P', '{}', true, false, now())"
    )
    assert [(one.server_id, one.discord_id) for one in await asked(16)] == [(3, "p2")]
    await change("UPDATE \"grant\" SET gift_since = now() WHERE server_id = 1 AND discord_id = 'p2'")
    assert [(one.server_id, one.discord_id) for one in await asked(16)] == [(1, "p2"), (3, "p2")]


async def test_a_role_that_was_refused_is_tried_one_change_at_a_time() -> None:
    await guilds(1, 5)
    await change(
        "INSERT INTO role_refusal (server_id, role_id, count, next_at) VALUES (1, '7', 1, now() + interval '1 hour')"
    )
    (trial,) = await asked(16)
    assert trial.trial
    assert await asked(16, busy=[trial.id]) == []
    await change("UPDATE rule SET state = 'paused', pause_cause = 'refused'")
    assert await asked(16) == [], "its pause is not over"
    await change("UPDATE role_refusal SET next_at = now()")
    assert len(await asked(16)) == 1
    await change("UPDATE rule SET pause_cause = NULL")
    assert await asked(16) == [], "an admin paused it"


async def test_a_refused_removal_waits_for_the_next_try_although_no_rule_is_left_to_pause() -> None:
    await guilds(2, 5, state="taking")
    await change("UPDATE rule SET deleted_at = now() WHERE server_id = 1")
    await change(
        "INSERT INTO role_refusal (server_id, role_id, count, next_at) VALUES (1, '7', 1, now() + interval '1 hour')"
    )
    assert set(servers(await asked(16))) == {2}
    await change("UPDATE role_refusal SET next_at = now()")
    assert servers(await asked(16)).count(1) == 1


async def test_who_gets_a_role_and_loses_another_gets_it_first() -> None:
    await guilds(1, 2, state="taking")
    await change(GIVE_ANOTHER)
    found = await asked(16)
    assert [(one.discord_id, one.giving) for one in found] == [("p2", False), ("p1", True)]
    gift = found[1].id
    assert [one.discord_id for one in await asked(16, busy=[gift])] == ["p2"], "it is being given"
    await change("UPDATE \"grant\" SET next_at = now() + interval '1 minute' WHERE id = :gift", gift=gift)
    assert [one.discord_id for one in await asked(16)] == ["p1", "p2"], "a gift that waits holds nothing back"
    late = "UPDATE \"grant\" SET next_at = now(), intended_at = now() - interval '31 seconds' WHERE id = :gift"
    await change(late, gift=gift)
    assert len(await asked(16)) == 3, "nor does one that cannot be given"


async def test_ages_are_by_the_clock_of_the_database() -> None:
    await guilds(1, 1, state="taking")
    await change("UPDATE \"grant\" SET intended_at = now() - interval '90 seconds'")
    (intent,) = await asked(1)
    assert timedelta(seconds=90) <= intent.age < timedelta(seconds=150)


@pytest.mark.parametrize("paused", [False, True], ids=["all are ready", "all but one are paused"])
async def test_what_is_read_does_not_grow_with_what_is_open(paused: bool) -> None:
    await guilds(40, 250)
    if paused:
        await change("UPDATE rule SET state = 'paused' WHERE server_id <> 40")
    await change('ANALYZE "grant"')
    question, values = outbox.question(16, (), (), 0)
    async with reading() as db:
        ((rows,),) = (await db.together((f"EXPLAIN (ANALYZE, FORMAT JSON) {question}", values)))[0]
    plan: Any = rows if isinstance(rows, list) else json.loads(rows)
    assert _touched(plan[0]["Plan"]) < 5_000


def _touched(node: dict[str, Any]) -> float:
    """Return how many rows all nodes of a plan passed on or filtered out."""
    own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return own + sum(_touched(child) for child in node.get("Plans", ()))
