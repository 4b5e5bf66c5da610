"""Rivals: other bots and people who move a role that a rule of ours gives, and the truce that ends a fight with them.

We never fight. Once others have twice within an hour reversed our changes of one member's role, we leave that member's
role alone for a day, or until an admin lets us continue.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from models import GrantKey
from models.db.session import AsyncSession
from services.core import audit, queue

REVERSALS, WITHIN, TRUCE = 2, timedelta(hours=1), timedelta(hours=24)
"""The number of reversals that begins a truce, the time within which they count, and the length of the truce."""
_SKEW = timedelta(seconds=5)
"""Maximum difference between Discord's clock, by which its log dates a move, and the database's."""
_SETTLING = timedelta(seconds=60)
"""How long after a write of ours an event may still show the member's former roles."""


@dataclass(frozen=True, slots=True)
class Reversal:
    """A role that somebody else took from a member, or gave to them."""

    server_id: int
    discord_id: str
    role_id: str
    taken: bool


async def record(db: AsyncSession, found: Sequence[Reversal], *, against: bool = False) -> None:
    """Record others' changes; with `against`, count them as reversals of ours and begin the truces that are due.

    With `against`, a role that others gave is recorded only if our last change was to take it.
    """
    if not found:
        return
    rows = json.dumps([asdict(one) for one in found])
    await db.execute(_RECORD, {"rows": rows, "against": against, "skew": _SKEW})
    if not against:
        return
    values = {"rows": rows, "most": REVERSALS, "within": WITHIN, "truce": TRUCE}
    begun = (await db.execute(_BEGIN, values)).all()
    await audit.record_all(
        db,
        [
            audit.role_line("role.left_alone", GrantKey(*line), data={"until": until.isoformat()})
            for *line, until in begun
        ],
    )


async def record_theirs(
    db: AsyncSession, server_id: int, who: str, given: Collection[str], taken: Collection[str]
) -> None:
    """Record those changes of a member's roles in a gateway event that others made.

    Leaves out our own changes, and those that the ledger records once Discord confirms them.
    """
    values = {"server": server_id, "who": who, "given": list(given), "taken": list(taken), "settling": _SETTLING}
    rows = (await db.execute(_OTHERS, values)).all()
    if rows:
        await record(db, [Reversal(server_id, who, role_id, was_taken) for role_id, was_taken in rows])


# Moves are locked in the order of their ids wherever several are written.
# `last` is the newest stored move of this member's role. If it has the same direction and is newer than our own last
# change, it is the same move, found in another way. But each reversal that the ledger finds is a new one.
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
    ), counting AS (
        SELECT id, found.since FROM rival_move JOIN found ON last = id
        WHERE same AND :against AND (found.taken OR ours = 'role.taken') ORDER BY id FOR UPDATE OF rival_move
    ), counted AS (
        UPDATE rival_move r SET against = true, since = c.since FROM counting c WHERE r.id = c.id
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
    """Return, for each role, who last took it from a member and when; leave out roles for which that is not known."""
    rows = await db.execute(
        "SELECT DISTINCT ON (role_id) role_id, actor_name, at FROM rival_move "
        "WHERE server_id = :server AND discord_id = :who AND taken ORDER BY role_id, at DESC, id DESC",
        {"server": server_id, "who": who},
    )
    return {str(role_id): (str(name), at) for role_id, name, at in rows.all() if name is not None}


async def end(db: AsyncSession, server_id: int, role_id: str, who: Collection[str] | None = None) -> list[str]:
    """End the truces about a role for these members, or for all; return the ids of the members whose truces ended.

    The rules decide about them again at once.
    """
    which = "server_id = :server AND role_id = :role AND (:all OR discord_id = ANY(CAST(:who AS text[])))"
    values = {"server": server_id, "role": role_id, "all": who is None, "who": list(who or ())}
    return [one.discord_id for one in await _ended(db, which, values)]


async def end_expired(db: AsyncSession) -> int:
    """End one server's expired truces, write them to the log, and return how many there were."""
    which = "until <= now() AND server_id = (SELECT server_id FROM truce WHERE until <= now() ORDER BY until LIMIT 1)"
    ended = await _ended(db, which, {})
    await audit.record_all(db, [audit.role_line("role.followed_again", one) for one in ended])
    return len(ended)


async def _ended(db: AsyncSession, which: str, values: Mapping[str, object]) -> list[GrantKey]:
    """Delete these truces of one server and the `lost` grants of their roles, and stop counting the former reversals.

    Without a grant, the role is given again if a rule says yes.
    """
    found = await db.execute(
        f"SELECT server_id, discord_id, role_id FROM truce WHERE {which} ORDER BY discord_id, role_id", values
    )
    lines = [GrantKey(*line) for line in found.all()]
    if not lines:
        return []
    # Before the other writes, as in all code that writes about members.
    await queue.mark_members(db, lines[0].server_id, sorted({one.discord_id for one in lines}), queue.CHANGED)
    rows = {"rows": json.dumps([one._asdict() for one in lines])}
    ended = (await db.execute(_END, rows)).all()
    for statement in _SETTLE:
        await db.execute(statement, rows)
    return [GrantKey(*line) for line in ended]


_NAMED = """jsonb_to_recordset(CAST(:rows AS jsonb)) AS c (server_id integer, discord_id text, role_id text)
    WHERE {0}.server_id = c.server_id AND {0}.discord_id = c.discord_id AND {0}.role_id = c.role_id"""
_END = f"""
    DELETE FROM truce WHERE (server_id, discord_id, role_id) IN (
        SELECT t.server_id, t.discord_id, t.role_id FROM truce t, {_NAMED.format("t")}
        ORDER BY t.server_id, t.discord_id, t.role_id FOR UPDATE OF t)
    RETURNING server_id, discord_id, role_id
"""
_SETTLE = (
    f"""
    UPDATE rival_move SET against = false WHERE id IN (
        SELECT r.id FROM rival_move r, {_NAMED.format("r")} AND r.against ORDER BY r.id FOR UPDATE OF r)
    """,
    f"""
    DELETE FROM "grant" WHERE id IN (
        SELECT g.id FROM "grant" g, {_NAMED.format("g")} AND g.state = 'lost'
        ORDER BY g.server_id, g.discord_id, g.role_id FOR UPDATE OF g)
    """,
)
