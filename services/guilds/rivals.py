"""Rivals: other bots and people who move a role that a rule of ours gives, and the truce that ends a fight with them.

We never fight: once others have reversed what we did to one role of one member twice within an hour, we leave that
role of that member alone for a day, or until an admin lets us continue.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import text

from models import GrantKey
from models.db.session import AsyncSession
from services.core import audit, queue

REVERSALS, WITHIN, TRUCE = 2, timedelta(hours=1), timedelta(hours=24)
"""So many reversals within that time begin a truce of this length."""
_SKEW = timedelta(seconds=5)
"""How far Discord's clock, by which its log dates a move, may be from the database's."""
_SETTLING = timedelta(seconds=60)
"""For how long after a write of ours an event may still show the member as they were before it."""


@dataclass(frozen=True, slots=True)
class Reversal:
    """Somebody else took a role from a member, or gave it."""

    server_id: int
    discord_id: str
    role_id: str
    taken: bool


async def record(db: AsyncSession, found: Sequence[Reversal], *, against: bool = False) -> None:
    """Record what others did, as the ledger found it; with `against`, begin a truce where it is time.

    A role that others gave is recorded with `against` only if our last change of it was to take it.
    """
    if not found:
        return
    rows = json.dumps([asdict(one) for one in found])
    await db.execute(text(_RECORD), {"rows": rows, "against": against, "skew": _SKEW})
    if not against:
        return
    values = {"rows": rows, "most": REVERSALS, "within": WITHIN, "truce": TRUCE}
    begun = (await db.execute(text(_BEGIN), values)).all()
    await audit.record_all(
        db,
        [
            audit.line(
                "role.left_alone", server_id=server_id, subject=who, role_id=role_id, data={"until": until.isoformat()}
            )
            for server_id, who, role_id, until in begun
        ],
    )


async def record_theirs(
    db: AsyncSession, server_id: int, who: str, given: Collection[str], taken: Collection[str]
) -> None:
    """Record which of these changes of a member's roles others made, as an event of the gateway shows them.

    Changes that are ours, or that the ledger records itself once Discord confirms them, are left out.
    """
    values = {"server": server_id, "who": who, "given": list(given), "taken": list(taken), "settling": _SETTLING}
    rows = (await db.execute(text(_OTHERS), values)).all()
    if rows:
        await record(db, [Reversal(server_id, who, role_id, was_taken) for role_id, was_taken in rows])


# `last` is the member's newest move of this role. One in the same direction that is newer than our own last change is
# the same move, found in another way; but each reversal that the ledger finds is a new one.
_RECORD = """
    WITH found AS (
        SELECT m.*, w.at AS since, w.kind AS ours, l.id AS last,
               l.taken IS NOT DISTINCT FROM m.taken AND NOT (:against AND l.against)
               AND l.at > COALESCE(w.at, '-infinity') - CAST(:skew AS interval) AS same
        FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS m (
            server_id integer, discord_id text, role_id text, taken boolean)
        LEFT JOIN LATERAL (
            SELECT e.at, e.kind FROM event e WHERE e.server_id = m.server_id AND e.subject = m.discord_id
            AND e.role_id = m.role_id AND e.kind IN ('role.given', 'role.taken') ORDER BY e.id DESC LIMIT 1) w ON true
        LEFT JOIN LATERAL (
            SELECT r.id, r.taken, r.at, r.against FROM rival_move r WHERE r.server_id = m.server_id
            AND r.discord_id = m.discord_id AND r.role_id = m.role_id ORDER BY r.at DESC, r.id DESC LIMIT 1) l ON true
    ), counted AS (
        UPDATE rival_move r SET against = true, since = f.since FROM found f
        WHERE r.id = f.last AND f.same AND :against AND (f.taken OR f.ours = 'role.taken')
    )
    INSERT INTO rival_move (server_id, discord_id, role_id, taken, at, since, against, naming, actor_bot, attempts,
                            next_at)
    SELECT server_id, discord_id, role_id, taken, now(), since, :against, 'open', false, 0, now()
    FROM found WHERE same IS NOT TRUE AND (taken OR NOT :against OR ours = 'role.taken')
    ORDER BY server_id, discord_id, role_id
"""
_BEGIN = """
    INSERT INTO truce (server_id, discord_id, role_id, since, until)
    SELECT r.server_id, r.discord_id, r.role_id, now(), now() + CAST(:truce AS interval)
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS m (server_id integer, discord_id text, role_id text)
    JOIN rival_move r USING (server_id, discord_id, role_id)
    WHERE r.against AND r.at > now() - CAST(:within AS interval)
    GROUP BY r.server_id, r.discord_id, r.role_id HAVING count(*) >= :most
    ORDER BY r.server_id, r.discord_id, r.role_id
    ON CONFLICT DO NOTHING RETURNING server_id, discord_id, role_id, until
"""
_OTHERS = """
    SELECT c.role_id, c.taken FROM (
        SELECT unnest(CAST(:given AS text[])) AS role_id, false AS taken
        UNION ALL SELECT unnest(CAST(:taken AS text[])), true) c
    LEFT JOIN "grant" g ON g.server_id = :server AND g.discord_id = :who AND g.role_id = c.role_id
    WHERE EXISTS (SELECT 1 FROM rule r WHERE r.server_id = :server AND r.role_id = c.role_id
        AND r.state = 'active' AND r.deleted_at IS NULL)
    AND (g.state IS NULL OR g.state = 'lost')
    AND NOT EXISTS (SELECT 1 FROM unanswered u WHERE u.server_id = :server AND u.discord_id = :who
        AND u.role_id = c.role_id)
    AND NOT EXISTS (SELECT 1 FROM event e WHERE e.server_id = :server AND e.subject = :who AND e.role_id = c.role_id
        AND e.kind IN ('role.given', 'role.taken') AND e.at > now() - CAST(:settling AS interval))
    ORDER BY c.role_id
"""


async def last_taker(db: AsyncSession, server_id: int, who: str) -> dict[str, tuple[str, datetime]]:
    """Return by role who last took it from a member, where that is known, and when."""
    rows = await db.execute(
        text(
            "SELECT DISTINCT ON (role_id) role_id, actor_name, at FROM rival_move "
            "WHERE server_id = :server AND discord_id = :who AND taken ORDER BY role_id, at DESC, id DESC"
        ),
        {"server": server_id, "who": who},
    )
    return {str(role_id): (str(name), at) for role_id, name, at in rows.all() if name is not None}


async def end(db: AsyncSession, server_id: int, role_id: str, who: Collection[str] | None = None) -> list[str]:
    """End the truces about a role, of these members or of all; return whose ended. The rules decide again at once."""
    which = "server_id = :server AND role_id = :role AND (:all OR discord_id = ANY(CAST(:who AS text[])))"
    values = {"server": server_id, "role": role_id, "all": who is None, "who": list(who or ())}
    return [discord_id for _, discord_id, _ in await _ended(db, which, values)]


async def end_expired(db: AsyncSession) -> int:
    """End the truces of one server whose time is over, record that, and return how many."""
    which = "until <= now() AND server_id = (SELECT server_id FROM truce WHERE until <= now() ORDER BY until LIMIT 1)"
    ended = await _ended(db, which, {})
    await audit.record_all(
        db,
        [
            audit.line("role.followed_again", server_id=server_id, subject=who, role_id=role_id)
            for server_id, who, role_id in ended
        ],
    )
    return len(ended)


async def forget(db: AsyncSession, gone: Sequence[tuple[int, str]]) -> None:
    """Delete the truces of members who left: a later membership begins without them."""
    if not gone:
        return
    servers, people = map(list, zip(*gone, strict=True))
    await db.execute(
        text(
            "DELETE FROM truce t USING unnest(CAST(:servers AS integer[]), CAST(:people AS text[])) "
            "AS g (server_id, discord_id) WHERE t.server_id = g.server_id AND t.discord_id = g.discord_id"
        ),
        {"servers": servers, "people": people},
    )


async def _ended(db: AsyncSession, which: str, values: Mapping[str, object]) -> list[GrantKey]:
    """Delete these truces of one server, what counts towards the next one, and the ledger's lines of lost roles.

    Without a line a role is given again if a rule says yes.
    """
    found = await db.execute(
        text(f"SELECT server_id, discord_id, role_id FROM truce WHERE {which} ORDER BY discord_id, role_id"), values
    )
    lines = [(int(server_id), str(who), str(role_id)) for server_id, who, role_id in found.all()]
    if not lines:
        return []
    # First, as everybody does who writes about members.
    await queue.mark_members(db, lines[0][0], sorted({who for _, who, _ in lines}), queue.CHANGED)
    rows = {"rows": json.dumps([dict(zip(("server_id", "discord_id", "role_id"), one, strict=True)) for one in lines])}
    ended = (await db.execute(text(_END), rows)).all()
    for statement in _SETTLE:
        await db.execute(text(statement), rows)
    return [(int(server_id), str(who), str(role_id)) for server_id, who, role_id in ended]


_NAMED = """jsonb_to_recordset(CAST(:rows AS jsonb)) AS c (server_id integer, discord_id text, role_id text)
    WHERE {0}.server_id = c.server_id AND {0}.discord_id = c.discord_id AND {0}.role_id = c.role_id"""
_END = f"DELETE FROM truce t USING {_NAMED.format('t')} RETURNING t.server_id, t.discord_id, t.role_id"
_SETTLE = (
    f"UPDATE rival_move r SET against = false FROM {_NAMED.format('r')} AND r.against",
    f"""DELETE FROM "grant" g USING {_NAMED.format("g")} AND g.state = 'lost'""",
)
