"""Figures over the servers that a person runs: how things stand, and how they came to stand so, counted in the log."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from sqlalchemy import text

from models import now
from models.session import AsyncSession
from services.actors import Actor
from services.errors import FieldRefused, ServerNotFound

RANGES = (7, 30, 90)
"""How many days a history can cover."""


@dataclass(frozen=True, slots=True)
class AnalyticsView:
    """The three cards of the dashboard."""

    total_verifications: int
    active_rules: int
    connected_servers: int


@dataclass(frozen=True, slots=True)
class RuleHistory:
    """A rule and how many members had its role by it at the end of each day."""

    id: int
    name: str
    server_name: str
    role_color: str
    holders: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HistoryView:
    """What happened on each day (in UTC, the last one is today); every series is as long as `days`."""

    days: tuple[date, ...]
    proofs: tuple[int, ...]
    roles_given: tuple[int, ...]
    roles_taken: tuple[int, ...]
    rules: tuple[RuleHistory, ...]


async def totals(db: AsyncSession, actor: Actor) -> AnalyticsView:
    """Distinct members whose proven wallets count, active rules, and servers with the bot (else all known servers)."""
    result = await db.execute(
        text(
            f"""
            WITH mine AS (
                SELECT s.id, s.bot_invited FROM access a JOIN server s ON s.id = a.server_id WHERE a.discord_id = :me
            )
            SELECT
              (SELECT count(DISTINCT m.discord_id) FROM member m JOIN mine ON mine.id = m.server_id
               WHERE m.left_at IS NULL AND EXISTS ({_COUNTING_WALLET})),
              (SELECT count(*) FROM rule r JOIN mine ON mine.id = r.server_id
               WHERE r.state = 'active' AND r.deleted_at IS NULL),
              (SELECT count(*) FROM mine WHERE bot_invited),
              (SELECT count(*) FROM mine)
            """
        ),
        {"me": actor.discord_id},
    )
    members, rules, with_bot, servers = (int(value) for value in result.one())
    return AnalyticsView(members, rules, with_bot or servers)


# A proven wallet of the member `m` that counts in that server.
_COUNTING_WALLET = """
    SELECT 1 FROM wallet w JOIN "user" u ON u.id = w.user_id
    LEFT JOIN member_choice c ON c.user_id = u.id AND c.server_id = m.server_id
    WHERE u.discord_id = m.discord_id AND COALESCE(c.use_wallets, true)
"""


async def history(db: AsyncSession, actor: Actor, days: int, server_id: int | None = None) -> HistoryView:
    """The last `days` days in one of the actor's servers, or in all of them together.

    Every number is a count over the log: proofs by present members whose wallets count there, roles given and taken,
    and per rule the members to whom the log says it gave a role that they still had when the day ended. Raises
    FieldRefused for another range, ServerNotFound for a server that the actor does not run.
    """
    if days not in RANGES:
        raise FieldRefused("days", "Choose 7, 30 or 90 days.")
    servers = await _servers(db, actor)
    if server_id is not None and server_id not in servers:
        raise ServerNotFound
    last = now().date()
    shown = tuple(last - timedelta(days=back) for back in reversed(range(days)))
    values: dict[str, Any] = {
        "servers": sorted(servers) if server_id is None else [server_id], "first": shown[0],
        "eve": shown[0] - timedelta(days=1),
    }  # fmt: skip
    return HistoryView(
        days=shown,
        proofs=await _daily(db, _PROOFS, values, shown),
        roles_given=await _daily(db, _ROLES, {**values, "kind": "role.given"}, shown),
        roles_taken=await _daily(db, _ROLES, {**values, "kind": "role.taken"}, shown),
        rules=await _holders(db, values, shown),
    )


async def _servers(db: AsyncSession, actor: Actor) -> set[int]:
    result = await db.execute(text("SELECT server_id FROM access WHERE discord_id = :me"), {"me": actor.discord_id})
    return {int(server_id) for (server_id,) in result.all()}


# A proof is of a person, not of a server: it counts once, however many of these servers they are in.
_PROOFS = f"""
    SELECT CAST(e.at AT TIME ZONE 'UTC' AS date), count(*) FROM event e
    WHERE e.kind = 'wallet.proved' AND CAST(e.at AT TIME ZONE 'UTC' AS date) >= :first AND EXISTS (
        SELECT 1 FROM member m WHERE m.discord_id = e.subject AND m.left_at IS NULL
        AND m.server_id = ANY(CAST(:servers AS integer[])) AND EXISTS ({_COUNTING_WALLET}))
    GROUP BY 1
"""
_ROLES = """
    SELECT CAST(at AT TIME ZONE 'UTC' AS date), count(*) FROM event
    WHERE kind = :kind AND server_id = ANY(CAST(:servers AS integer[]))
    AND CAST(at AT TIME ZONE 'UTC' AS date) >= :first GROUP BY 1
"""


async def _daily(db: AsyncSession, statement: str, values: dict[str, Any], shown: tuple[date, ...]) -> tuple[int, ...]:
    counted = {day: int(count) for day, count in (await db.execute(text(statement), values)).all()}
    return tuple(counted.get(day, 0) for day in shown)


# Each line about somebody's role is a step to the rules that hold it from then on: those that a `role.given`,
# a `role.taken_over` or a later `role.reasons` names, and none once it is taken, lost, gone with its member, or deleted
# in Discord.
_STEPS = """
    WITH lines AS (
        SELECT id, at, kind, server_id, role_id, subject,
               CASE WHEN kind IN ('role.given', 'role.taken_over', 'role.reasons') THEN
                   ARRAY(SELECT CAST(r AS integer) FROM jsonb_array_elements_text(data -> 'ruleIds') r)
               ELSE CAST('{}' AS integer[]) END AS rules
        FROM event WHERE server_id = ANY(CAST(:servers AS integer[]))
        AND kind IN ('role.given', 'role.taken_over', 'role.reasons', 'role.taken', 'role.lost', 'member.left',
                     'role.deleted')
    ), had AS (
        SELECT DISTINCT server_id, role_id, subject FROM lines WHERE kind IN ('role.given', 'role.taken_over')
    ), steps AS (
        SELECT id, at, server_id, role_id, subject, rules FROM lines WHERE kind NOT IN ('member.left', 'role.deleted')
        UNION ALL
        SELECT l.id, l.at, h.server_id, h.role_id, h.subject, l.rules FROM lines l JOIN had h
        ON h.server_id = l.server_id AND CASE l.kind WHEN 'member.left' THEN h.subject = l.subject
                                                     WHEN 'role.deleted' THEN h.role_id = l.role_id ELSE false END
    ), changes AS (
        SELECT at, rules AS after, lag(rules, 1, CAST('{}' AS integer[])) OVER (
            PARTITION BY server_id, role_id, subject ORDER BY id) AS before FROM steps
    ), turns AS (
        SELECT unnest(after) AS rule_id, at, 1 AS step FROM changes
        UNION ALL SELECT unnest(before), at, -1 FROM changes
    )
    SELECT rule_id, GREATEST(CAST(at AT TIME ZONE 'UTC' AS date), :eve) AS day, sum(step) FROM turns GROUP BY 1, 2
"""
_RULES = """
    SELECT r.id, r.name, s.name, r.role_color FROM rule r JOIN server s ON s.id = r.server_id
    WHERE r.server_id = ANY(CAST(:servers AS integer[])) AND r.deleted_at IS NULL ORDER BY r.id
"""


async def _holders(db: AsyncSession, values: dict[str, Any], shown: tuple[date, ...]) -> tuple[RuleHistory, ...]:
    """Per rule its series, those with the most holders now first."""
    steps = {(int(rule), day): int(step) for rule, day, step in (await db.execute(text(_STEPS), values)).all()}
    found: list[RuleHistory] = []
    for rule_id, name, server, color in (await db.execute(text(_RULES), values)).all():
        count, series = steps.get((rule_id, values["eve"]), 0), list[int]()
        for day in shown:
            count += steps.get((rule_id, day), 0)
            series.append(count)
        found.append(RuleHistory(rule_id, name, server, color, tuple(series)))
    return tuple(sorted(found, key=lambda rule: (-rule.holders[-1], rule.id)))
