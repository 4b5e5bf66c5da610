"""If the database's clock was ahead, nothing keeps waiting once the clock is right again."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

import models
from models import Breaker, Member, ProviderState, Schedule, transaction
from models.db import future_times
from models.db.session import AsyncSession
from services.core import queue
from services.runtime import schedules
from tests.support.builders import a_grant, a_member, a_rule, a_server
from tests.support.statements import Step, meet

pytestmark = pytest.mark.usefixtures("database")

DAYS, HOUR = timedelta(days=3), timedelta(hours=1)
ROWS = (
    "INSERT INTO due (kind, key, priority, due_at, version, attempts, claimed_by, claimed_until) "
    "VALUES ('member', '1:5', 0, now(), 1, 0, 'w', now() + :ahead)",
    "INSERT INTO cursor (chain, block, block_hash, updated_at, owner, owned_until) "
    "VALUES ('base', 1, '', now() + :ahead, 'w', now() + :ahead)",
    'INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, intended_at, next_at, '
    "no_since, attempts, created_at, updated_at) "
    "VALUES (:server, '5', '7', '{}', 'taking', false, '{}', now() + :ahead, now() + :ahead, now() + :ahead, 0, "
    "now() + :ahead, now() + :ahead)",
    "INSERT INTO rule (server_id, name, role_id, role_name, role_color, expression, verification_type, "
    "contract_address, blockchain, min_tokens, token_ids, removal_mode, removal_hours, state, created_by, created_at, "
    "updated_at) VALUES (:server, '', '7', '', '', '{}', '', '', '', 1, '{}', 'now', 0, 'active', '5', "
    "now() + :ahead, now())",
    "INSERT INTO breaker (server_id, role_id, tripped_at, would_lose, holders, approved_at, dismissed_at) "
    "VALUES (:server, '7', now() + :ahead, 9, 9, now() + :ahead, now() + :ahead)",
    "INSERT INTO unanswered (server_id, discord_id, role_id, giving, at) "
    "VALUES (:server, '5', '7', true, now() + :ahead)",
    "INSERT INTO role_refusal (server_id, role_id, count, next_at) VALUES (:server, '7', 1, now() + :ahead)",
    "INSERT INTO guild_refusal (guild_id, began_at, count, rests, rests_until) "
    "VALUES ('9', now() + :ahead, 30, 1, now() + :ahead)",
    "INSERT INTO refusal (minute, count) VALUES (now() + :ahead, 600)",
    "INSERT INTO rate_share (process, kind, wanted, share, seen_at) VALUES ('gone', 'jobs', 1, 1, now() + :ahead)",
    "INSERT INTO quarantine (chain, kind, address, reason, times, since, until) "
    "VALUES ('base', 'contracts', '0x1', 'too much', 1, now(), now() + :ahead)",
    "INSERT INTO identify (at) VALUES (now() + :ahead)",
    "INSERT INTO gateway_limit (id, total, remaining, resets_at, max_concurrency, shards, read_at) "
    "VALUES (1, 1000, 1000, now() + :ahead, 1, 1, now() + :ahead)",
    "INSERT INTO shard (shards, id, holder, held_until) VALUES (1, 0, 'gone', now() + :ahead)",
    "INSERT INTO bot_process (name, part, shards, seen_at) VALUES ('gone', 'auto', 1, now() + :ahead)",
    "INSERT INTO ended_delegation (chain, delegate, vault, contract, token_id, first_seen_at, ended_at) "
    "VALUES ('base', '0x1', '0x2', '', '', now() + :ahead, now() + :ahead)",
    "INSERT INTO delegation (chain, delegate, vault, contract, token_id, first_seen_at) "
    "VALUES ('base', '0x1', '0x2', '', '', now() + :ahead)",
    'WITH u AS (INSERT INTO "user" (discord_id, username, connected, created_at, updated_at) '
    "VALUES ('5', '', false, now(), now()) RETURNING id) "
    "INSERT INTO wallet (user_id, family, address, method, evidence, created_at) "
    "SELECT id, 'evm', '0x1', '', '{}', now() + :ahead FROM u",
    "INSERT INTO schedule (name, next_at, started_at, done, total) VALUES ('round', now(), now() + :ahead, 0, 0)",
    "INSERT INTO role_watch (server_id, role_id, at) VALUES (:server, '8', now() + :ahead)",
    "INSERT INTO delegation_read (chain, delegate, block, endpoint, read_at, more) "
    "VALUES ('base', '0x1', 1, 0, now() + :ahead, false)",
    "INSERT INTO webhook (server_id, url, events, secret, old_secret, old_until, next_at, served_at, claimed_by, "
    "claimed_until, failures, slow, created_at) VALUES (:server, 'https://a.example', '{}', '', '', "
    "now() + interval '1 day' + :ahead, now() + :ahead, now() + :ahead, 'w', now() + :ahead, 0, false, now() + :ahead)",
    "INSERT INTO webhook_delivery (uuid, server_id, event, state, attempts, next_at, created_at) "
    "VALUES (gen_random_uuid(), :server, 'test', 'waiting', 0, now() + :ahead, now() + :ahead)",
    "INSERT INTO census (chain, contract, state, block, block_hash, again, moves, tokens, faults, reason, holder, "
    "held_until, next_at, wanted_at, counted_at, moved_at) VALUES ('base', '0x1', 'counting', 1, '', false, 0, 0, 0, "
    "'', 'w', now() + :ahead, now() + :ahead, now(), now() + :ahead, now() + :ahead)",
    "INSERT INTO census_turn (server_id, at) VALUES (:server, now() + :ahead)",
    "INSERT INTO reach_day (rule_id, day, holders, verified, chains, reason, digest, at) "
    "SELECT id, CAST((now() + :ahead) AT TIME ZONE 'UTC' AS date), 1, 1, '[]', '', '', now() + :ahead FROM rule",
    "INSERT INTO reach (server_id, digest, expression, state, reason, chains, daily, created_at) "
    "VALUES (:server, 'd', '{}', 'counting', '', '[]', false, now() + :ahead)",
    "INSERT INTO alert (server_id, key, title, text, mend, began_at, attempts, next_at) "
    "VALUES (:server, 'k', '', '', '', now(), 0, now() + :ahead)",
    "INSERT INTO rival_move (server_id, discord_id, role_id, taken, at, against, naming, actor_bot, attempts, next_at) "
    "VALUES (:server, '5', '7', true, now() + :ahead, false, 'open', false, 0, now() + :ahead)",
    "INSERT INTO truce (server_id, discord_id, role_id, since, until) "
    "VALUES (:server, '5', '7', now(), now() + interval '1 day' + :ahead)",
    "INSERT INTO server_move "
    "(server_id, state, roles, begins_at, begun_at, until, approved_at, messages_at, created_at) "
    "VALUES (:server, 'approved', '{}', now() + :ahead, now() + :ahead, now() + 2 * CAST(:ahead AS interval), "
    "now() + :ahead, now() + :ahead, now())",
    "INSERT INTO move_count (move_id, role_id, day, earned, unearned, unverified, unknown, at) "
    "SELECT id, '7', CAST((now() + :ahead) AT TIME ZONE 'UTC' AS date), 1, 1, 1, 1, now() + :ahead FROM server_move",
    "INSERT INTO provider_state (provider, state, since, checked_at, ok_at) "
    "VALUES ('bot', 'ok', now() + :ahead, now() + :ahead, now() + :ahead)",
    "INSERT INTO member (server_id, discord_id, name, roles, bot, pending, seen_at, left_at) "
    "VALUES (:server, '5', '', '{}', false, false, now() + :ahead, now() + :ahead)",
    "INSERT INTO access (discord_id, server_id, owner, checked_at) VALUES ('5', :server, false, now() + :ahead)",
    "INSERT INTO handover (user_id, code_hash, created_at, expires_at) "
    "SELECT id, '', now() + :ahead, now() + interval '10 minutes' + :ahead FROM \"user\"",
    "INSERT INTO sign_in (state_hash, cookie_hash, verifier, return_path, purpose, expires_at) "
    "VALUES ('', '', '', '', 'sign_in', now() + interval '10 minutes' + :ahead)",
    "INSERT INTO api_token (server_id, user_id, name, hash, prefix, scopes, expires_at, used_at, created_at) "
    "SELECT :server, id, '', '', '', '{}', now() + interval '366 days' + :ahead, now() + :ahead, now() + :ahead "
    'FROM "user"',
    "INSERT INTO session (id_hash, user_id, user_agent, created_at, seen_at, expires_at) "
    "SELECT '', id, '', now() + :ahead, now() + :ahead, now() + interval '7 days' + :ahead FROM \"user\"",
    "INSERT INTO challenge (user_id, family, address, code, amount_wei, created_at, expires_at, screen_at, seen, note) "
    "SELECT id, 'evm', '0x1', 'c', 1, now() + :ahead, now() + interval '1 day' + :ahead, now() + :ahead, '{}', '' "
    'FROM "user"',
)
LEFT = """
    SELECT 'due', count(*) FROM due WHERE claimed_until > now()
    UNION ALL SELECT 'cursor', count(*) FROM cursor WHERE owned_until > now() OR updated_at > now()
    UNION ALL SELECT 'grant', count(*) FROM "grant"
        WHERE next_at > now() OR no_since > now() OR intended_at > now() OR created_at > now() OR updated_at > now()
    UNION ALL SELECT 'rule', count(*) FROM rule WHERE created_at > now()
    UNION ALL SELECT 'breaker', count(*) FROM breaker
        WHERE tripped_at > now() OR approved_at > now() - interval '1 day' OR dismissed_at > now()
    UNION ALL SELECT 'unanswered', count(*) FROM unanswered WHERE at > now()
    UNION ALL SELECT 'role_refusal', count(*) FROM role_refusal WHERE next_at > now()
    UNION ALL SELECT 'guild_refusal', count(*) FROM guild_refusal WHERE rests_until > now() OR began_at > now()
    UNION ALL SELECT 'refusal', count(*) FROM refusal
    UNION ALL SELECT 'rate_share', count(*) FROM rate_share
    UNION ALL SELECT 'quarantine', count(*) FROM quarantine WHERE until > now()
    UNION ALL SELECT 'identify', count(*) FROM identify WHERE at > now()
    UNION ALL SELECT 'gateway_limit', count(*) FROM gateway_limit
    UNION ALL SELECT 'shard', count(*) FROM shard WHERE holder IS NOT NULL
    UNION ALL SELECT 'bot_process', count(*) FROM bot_process
    UNION ALL SELECT 'ended_delegation', count(*) FROM ended_delegation
        WHERE ended_at > now() OR first_seen_at > now()
    UNION ALL SELECT 'delegation', count(*) FROM delegation WHERE first_seen_at > now()
    UNION ALL SELECT 'wallet', count(*) FROM wallet WHERE created_at > now()
    UNION ALL SELECT 'schedule', count(*) FROM schedule WHERE started_at > now()
    UNION ALL SELECT 'role_watch', count(*) FROM role_watch WHERE at > now()
    UNION ALL SELECT 'delegation_read', count(*) FROM delegation_read WHERE read_at > now()
    UNION ALL SELECT 'webhook', count(*) FROM webhook
        WHERE next_at > now() OR claimed_until > now() OR created_at > now() OR served_at > now()
        OR old_until > now() + interval '1 day'
    UNION ALL SELECT 'webhook_delivery', count(*) FROM webhook_delivery WHERE next_at > now() OR created_at > now()
    UNION ALL SELECT 'census', count(*) FROM census
        WHERE held_until > now() OR next_at > now() OR counted_at > now() OR moved_at > now()
    UNION ALL SELECT 'census_turn', count(*) FROM census_turn WHERE at > now()
    UNION ALL SELECT 'reach_day', count(*) FROM reach_day
        WHERE at > now() OR day > CAST((now() + interval '1 minute') AT TIME ZONE 'UTC' AS date)
    UNION ALL SELECT 'reach', count(*) FROM reach WHERE created_at > now()
    UNION ALL SELECT 'alert', count(*) FROM alert WHERE next_at > now()
    UNION ALL SELECT 'rival_move', count(*) FROM rival_move WHERE next_at > now() OR at > now()
    UNION ALL SELECT 'truce', count(*) FROM truce WHERE until > now() + interval '1 day'
    UNION ALL SELECT 'server_move', count(*) FROM server_move
        WHERE messages_at > now() OR begins_at > now() OR begun_at > now() OR approved_at > now()
    UNION ALL SELECT 'move_count', count(*) FROM move_count
        WHERE at > now() OR day > CAST((now() + interval '1 minute') AT TIME ZONE 'UTC' AS date)
    UNION ALL SELECT 'provider_state', count(*) FROM provider_state
        WHERE checked_at > now() OR since > now() OR ok_at > now()
    UNION ALL SELECT 'member', count(*) FROM member WHERE seen_at > now() OR left_at > now()
    UNION ALL SELECT 'access', count(*) FROM access WHERE checked_at > now()
    UNION ALL SELECT 'handover', count(*) FROM handover WHERE expires_at > now() + interval '10 minutes'
    UNION ALL SELECT 'sign_in', count(*) FROM sign_in WHERE expires_at > now() + interval '10 minutes'
    UNION ALL SELECT 'api_token', count(*) FROM api_token
        WHERE created_at > now() OR used_at > now() OR expires_at > now() + interval '366 days'
    UNION ALL SELECT 'session', count(*) FROM session
        WHERE created_at > now() OR seen_at > now() OR expires_at > now() + interval '7 days'
    UNION ALL SELECT 'challenge', count(*) FROM challenge
        WHERE created_at > now() - interval '1 day' OR expires_at > now() + interval '1 day' OR screen_at > now()
"""


async def written(moved: timedelta) -> None:
    async with transaction() as db:
        server = await a_server(db)
        for statement in ROWS:
            named = {
                name: value for name, value in (("ahead", moved), ("server", server.id)) if f":{name}" in statement
            }
            await db.execute(text(statement), named)


async def correct(db: AsyncSession) -> None:
    for statement, values in future_times.corrections():
        await db.execute(text(statement), values)


async def left() -> list[str]:
    """Correct the times, and return the tables in which one is still in the future."""
    async with transaction() as db:
        await correct(db)
    async with transaction() as db:
        return [name for name, count in (await db.execute(text(LEFT))).all() if count]


async def test_what_lies_days_ahead_waits_no_longer() -> None:
    await written(DAYS)
    assert await left() == []


async def test_the_times_of_grants_wait_for_a_reconcile_of_two_members_and_never_deadlock() -> None:
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), "7")
        people = [await a_member(db, server) for _ in range(2)]
        first, last = sorted(people, key=lambda member: member.discord_id)
        for member in (first, last):
            (await a_grant(db, member, rule)).no_since = models.now() + DAYS
        while (await db.execute(text(FRONT))).scalar_one() == first.discord_id:
            await db.execute('UPDATE "grant" SET attempts = 0 WHERE discord_id = :who', {"who": first.discord_id})

    def grant_of(member: Member) -> Step:
        named = {"who": member.discord_id}
        return lambda db: db.execute('SELECT 1 FROM "grant" WHERE discord_id = :who FOR UPDATE', named)

    await meet(correct, grant_of(first), grant_of(last))
    assert await left() == []


FRONT = 'SELECT discord_id FROM "grant" ORDER BY ctid LIMIT 1'
"""The member whose grant the table holds before all others."""


async def test_what_may_lie_some_seconds_ahead_stays() -> None:
    await written(timedelta(seconds=50))
    assert len(await left()) == len(ROWS)


async def test_a_challenge_that_no_screen_has_shown_stays_so() -> None:
    await written(DAYS)
    async with transaction() as db:
        await db.execute(text("UPDATE challenge SET screen_at = NULL"))
    assert await left() == []
    async with transaction() as db:
        assert (await db.execute(text("SELECT screen_at FROM challenge"))).scalar_one() is None


async def test_a_member_who_is_there_and_a_provider_that_never_answered_stay_so() -> None:
    async with transaction() as db:
        member = await a_member(db, await a_server(db))
        member.seen_at = models.now() + DAYS
        db.add(member)
        db.add(ProviderState(provider="base:0", state="down", checked_at=models.now() + DAYS))
    assert await left() == []
    async with transaction() as db:
        assert (await db.get_one(Member, (member.server_id, member.discord_id))).left_at is None
        assert (await db.get_one(ProviderState, "base:0")).ok_at is None


async def test_a_breaker_that_was_only_approved_counts_as_neither_waiting_nor_dismissed() -> None:
    async with transaction() as db:
        server = await a_server(db)
        ahead = models.now() + DAYS
        db.add(Breaker(server_id=server.id or 0, role_id="7", tripped_at=ahead, would_lose=9, holders=9,
                       approved_at=ahead, approved_by="5"))  # fmt: skip
    assert await left() == []
    async with transaction() as db:
        row = await db.get_one(Breaker, (server.id, "7"))
        assert (row.approved_at is None, row.dismissed_at) == (False, None)


async def planned(name: str) -> datetime:
    async with transaction() as db:
        return (await db.get_one(Schedule, name)).next_at


async def test_a_schedule_that_is_further_away_than_its_period_is_due_and_then_as_usual() -> None:
    async with transaction() as db:
        db.add(Schedule(name="round", next_at=models.now() + DAYS))
    async with transaction() as db:
        assert await schedules.claim(db, "round", HOUR)
    assert await planned("round") <= models.now() + HOUR
    async with transaction() as db:
        assert not await schedules.claim(db, "round", HOUR)


async def test_two_clocks_that_claim_at_the_same_moment_do_it_once() -> None:
    async with transaction() as early:
        await early.execute(text("SELECT now()"))
        async with transaction() as db:
            db.add(Schedule(name="round", next_at=models.now()))
        async with transaction() as db:
            assert await schedules.claim(db, "round", HOUR)
        assert not await schedules.claim(early, "round", HOUR)


@pytest.mark.parametrize(
    ("attempts", "priority", "ahead", "waits"),
    [(3, 0, DAYS, False), (0, queue.SEEN, DAYS, False), (3, queue.AGAIN, HOUR, True), (0, queue.SWEPT, DAYS, True)],
    ids=["tried again", "seen", "tried again within the hour", "for the end of a grace time"],
)
async def test_a_member_who_would_be_tried_again_only_in_days_is_due_now(
    attempts: int, priority: int, ahead: timedelta, waits: bool
) -> None:
    async with transaction() as db:
        await db.execute(
            text(
                "INSERT INTO due (kind, key, priority, due_at, version, attempts) "
                "VALUES ('member', '1:5', :priority, now() + :ahead, 1, :attempts)"
            ),
            {"priority": priority, "ahead": ahead, "attempts": attempts},
        )
    async with transaction() as db:
        await correct(db)
        claimed = await queue.claim(db, "w", 1)
    assert len(claimed) == (not waits)
