"""Mark members as due for a reconcile.

A member's row in the queue is also the lock on the data stored about them: a reconcile locks the rows of its members
before it writes their data. A transaction that marks people and writes their data must mark first, in one statement.
"""

import json
from collections.abc import Collection, Mapping, Sequence

from gateways.chains.catalogue import CHAINS
from models.db.session import AsyncSession, Question
from services.core import request_ids

CHANNEL = "holdfast_due"
"""The NOTIFY channel for members that became due."""

# In order: a member waits at the screen, has just joined, has moved a token; a setting changed; the daily sweep.
WAITING, JOINED, SEEN, CHANGED, SWEPT = 100, 80, 60, 50, 0
AGAIN = 10
"""Priority of retries: above the sweep, below new work."""
EACH_TURN = 50
"""How many members of a server the sweep takes in one turn; they share the data that is read for the server."""

# A range of keys, because a condition on a part of the key would read the whole queue. In every collation, ids of at
# most 20 digits come before so many nines; only in some come no other keys between, so the id is compared too.
OF_SERVER = (
    "d.kind = 'member' AND d.key BETWEEN s.id || ':' AND s.id || ':' || repeat('9', 24) "
    "AND split_part(d.key, ':', 1) = CAST(s.id AS text)"
)
"""The condition, in SQL, that a row `d` of the queue is of the server whose id is in `s`."""


async def mark_member(db: AsyncSession, server_id: int, discord_id: str, priority: int) -> None:
    """Mark one member of one server as due now."""
    await _mark(db, "SELECT CAST(:server AS integer) AS server_id, CAST(:who AS text) AS discord_id", priority,
                {"server": server_id, "who": discord_id})  # fmt: skip


async def mark_members(db: AsyncSession, server_id: int, people: Sequence[str], priority: int) -> int:
    """Mark those of the given members whom a rule of the server can concern."""
    who = _concerned("AND m.server_id = :server AND m.discord_id = ANY(CAST(:people AS text[]))")
    return await _mark(db, who, priority, {"server": server_id, "people": list(people)})


async def mark_listed(
    db: AsyncSession, server_id: int, people: Sequence[str], newcomers: Mapping[str, Collection[str]], priority: int
) -> int:
    """Mark members as `mark_members` does, and those `newcomers` whom a rule of the server can concern.

    `newcomers` are people (no bots) with their roles, who are not stored as members yet. They are stored after this, in
    the same transaction.
    """
    known = _concerned("AND m.server_id = :server AND m.discord_id = ANY(CAST(:people AS text[]))")
    new = [{"discord_id": who, "roles": sorted(roles)} for who, roles in newcomers.items()]
    values: dict[str, object] = {"server": server_id, "people": list(people), "new": json.dumps(new)}
    return await _mark(db, f"{known} UNION {_concerned(among=_NEWCOMERS)}", priority, values)


# As `member` will have them: present, and no bots.
_NEWCOMERS = (
    "(SELECT CAST(:server AS integer) AS server_id, discord_id, roles, CAST(NULL AS timestamptz) AS left_at, "
    "false AS bot FROM jsonb_to_recordset(CAST(:new AS jsonb)) AS n (discord_id text, roles text[]))"
)


def mark_holders(db: AsyncSession, chain: str, addresses: Sequence[str], priority: int) -> None:
    """Mark the owners of these wallets and their delegates on the chain, in every server with the bot."""
    statement, values = _marking(
        "SELECT DISTINCT m.server_id, m.discord_id FROM (SELECT unnest(CAST(:addresses AS text[])) AS address UNION "
        "SELECT d.delegate FROM delegation d WHERE d.chain = :chain AND d.vault = ANY(CAST(:addresses AS text[]))) a "
        "JOIN wallet w ON w.family = :family AND w.address = a.address AND w.chain IN ('', :chain) "
        'JOIN "user" u ON u.id = w.user_id JOIN member m ON m.discord_id = u.discord_id '
        "JOIN server s ON s.id = m.server_id WHERE m.left_at IS NULL AND s.bot_invited",
        priority,
        {"addresses": list(addresses), "chain": chain, "family": CHAINS[chain].family},
        sighting=True,
    )
    db.later(statement, values)


async def mark_claimants(
    db: AsyncSession,
    vaults: Sequence[str],
    priority: int,
    *,
    without: Sequence[str] = (),
    servers: Sequence[int] | None = None,
) -> int:
    """Mark the members for whom the holdings of these vaults may count through a delegation.

    Excludes the delegates in `without`; `servers` limits the servers, None means all. The marks count as sightings,
    because anybody can cause them for another person as often as they like.
    """
    if not vaults:
        return 0
    return await _mark(
        db,
        _CLAIMANTS,
        priority,
        {"vaults": list(vaults), "without": list(without), "servers": None if servers is None else list(servers)},
        sighting=True,
    )


_CLAIMANTS = """
    SELECT DISTINCT m.server_id, m.discord_id FROM delegation d
    JOIN wallet w ON w.family = 'evm' AND w.address = d.delegate AND w.chain IN ('', d.chain)
    JOIN "user" u ON u.id = w.user_id JOIN member m ON m.discord_id = u.discord_id AND m.left_at IS NULL
    JOIN server s ON s.id = m.server_id AND s.bot_invited
    WHERE d.vault = ANY(CAST(:vaults AS text[])) AND d.delegate <> ALL(CAST(:without AS text[]))
    AND (CAST(:servers AS integer[]) IS NULL OR m.server_id = ANY(CAST(:servers AS integer[])))
"""


async def mark_other_delegates(
    db: AsyncSession, addresses: Sequence[str], priority: int, servers: Sequence[int] | None = None
) -> int:
    """Mark the members whose count depends on whether these wallets count for somebody.

    These are the delegates of the addresses, and the other delegates of vaults that delegated to the addresses;
    `servers` limits the servers, None means all.
    """
    vaults = await _vaults_of(db, addresses)
    return await mark_claimants(db, vaults, priority, without=addresses, servers=servers)


async def mark_people(
    db: AsyncSession,
    people: Sequence[str],
    wallets: Sequence[str] = (),
    *,
    servers: Sequence[int] | None = None,
    also: Sequence[int] = (),
    priority: int = WAITING,
) -> None:
    """Mark people in the bot's servers where they are members, and everyone `mark_other_delegates` marks for `wallets`.

    `servers` limits the servers, None means all; `also` are servers where the people are marked even if they left.
    `priority` is that of the people; the delegates' is CHANGED.
    All are marked in one statement, which must come before any other write about them. A reconcile locks its rows
    first too, so one waits for the other instead of deadlocking.
    """
    statement = f"""
        SELECT server_id, discord_id, max(priority) AS priority, min(sighting) AS sighting FROM (
            SELECT m.server_id, m.discord_id, CAST(:priority AS integer) AS priority, 0 AS sighting
            FROM member m JOIN server s ON s.id = m.server_id
            WHERE m.discord_id = ANY(CAST(:people AS text[])) AND m.left_at IS NULL AND s.bot_invited
            AND (CAST(:servers AS integer[]) IS NULL OR m.server_id = ANY(CAST(:servers AS integer[])))
            UNION ALL
            SELECT server_id, discord_id, :priority, 0
            FROM unnest(CAST(:also AS integer[])) server_id, unnest(CAST(:people AS text[])) discord_id
            UNION ALL
            SELECT server_id, discord_id, :changed, 1 FROM ({_CLAIMANTS}) c
        ) each_of GROUP BY server_id, discord_id
    """
    values: dict[str, object] = {
        "people": list(people), "also": list(also), "priority": priority, "changed": CHANGED,
        "vaults": await _vaults_of(db, wallets), "without": list(wallets),
        "servers": None if servers is None else list(servers),
    }  # fmt: skip
    await db.together(_insertion(statement, values, each=1))


async def _vaults_of(db: AsyncSession, addresses: Sequence[str]) -> list[str]:
    """Return the addresses and the vaults that delegated to them."""
    if not addresses:
        return []
    of_them = "SELECT DISTINCT vault FROM delegation WHERE delegate = ANY(CAST(:addresses AS text[]))"
    (rows,) = await db.together((of_them, {"addresses": list(addresses)}))
    return sorted({*addresses, *(vault for (vault,) in rows)})


async def mark_server(db: AsyncSession, server_id: int, priority: int) -> int:
    """Mark the members whom a rule of the server can concern, or could until now."""
    return await mark_servers(db, [server_id], priority)


async def invalidate_running(db: AsyncSession, server_id: int) -> None:
    """Invalidate the running reconciles of a server's members, because their input has changed."""
    # A reconcile that is writing holds locks on its rows; waiting for it could deadlock.
    await db.execute(
        "UPDATE due SET version = version + 1 WHERE ctid = ANY(ARRAY("
        f"SELECT d.ctid FROM (SELECT CAST(:server AS integer) AS id) s JOIN due d ON {OF_SERVER} "
        "WHERE d.claimed_until IS NOT NULL FOR UPDATE OF d SKIP LOCKED))",
        {"server": server_id},
    )


async def mark_servers(db: AsyncSession, servers: Sequence[int], priority: int) -> int:
    """Mark the members whom a rule of these servers can concern, or could until now: those who are queued.

    A running reconcile of somebody whom only a former rule or an ended move concerned must write nothing by it.
    """
    who = _concerned("AND m.server_id = ANY(CAST(:servers AS integer[]))")
    return await _mark(db, f"{who} UNION {_QUEUED}", priority, {"servers": list(servers)})


_QUEUED = f"""
    SELECT s.id, split_part(d.key, ':', 2) FROM unnest(CAST(:servers AS integer[])) AS s (id)
    JOIN due d ON {OF_SERVER}
"""


async def mark_all(db: AsyncSession, priority: int = SWEPT) -> int:
    """Mark all members whom a rule can concern, because transfers were missed that may be anybody's.

    Like the mark of a transfer it counts as a sighting: a running reconcile may have read a wallet before them.
    """
    return await _mark(db, _concerned(), priority, {}, sighting=True)


async def mark_swept(db: AsyncSession, servers: Sequence[int]) -> int:
    """Mark the members of these servers whom a rule can concern, for a part of the daily sweep.

    The sweep brings no news about them, so a running reconcile counts as their part of the sweep: versions stay.
    """
    who = _concerned("AND m.server_id = ANY(CAST(:servers AS integer[]))")
    return await _mark(db, who, SWEPT, {"servers": list(servers)}, raises_version=False)


def _concerned(more: str = "", among: str = "member") -> str:
    """Return the SQL for present members (no bots) with a wallet, a grant, or a role to take over or being moved.

    `more` is a further condition in SQL; `among` is the table, or a query with its columns in parentheses.
    """
    # Joins, not conditions: a condition would look up each of a million members separately.
    return " UNION ".join(
        f"SELECT m.server_id, m.discord_id FROM {among} m JOIN server s ON s.id = m.server_id {reason} "
        f"WHERE m.left_at IS NULL AND NOT m.bot AND s.bot_invited {more}"
        for reason in (
            'JOIN "user" u ON u.discord_id = m.discord_id JOIN wallet w ON w.user_id = u.id',
            'JOIN "grant" g ON g.server_id = m.server_id AND g.discord_id = m.discord_id',
            "JOIN rule r ON r.server_id = m.server_id AND r.takes_over AND r.state = 'active' AND r.deleted_at IS NULL "
            "AND r.role_id = ANY(m.roles)",
            "JOIN server_move v ON v.server_id = m.server_id AND v.state = 'open' AND v.begins_at <= now() "
            "AND v.roles && m.roles",
        )
    )


async def _mark(
    db: AsyncSession,
    who: str,
    priority: int,
    values: dict[str, object],
    *,
    raises_version: bool = True,
    sighting: bool = False,
) -> int:
    question = _marking(who, priority, values, raises_version=raises_version, sighting=sighting)
    (((marked, _),),) = await db.together(question)
    return int(marked)


def _marking(
    who: str, priority: int, values: dict[str, object], *, raises_version: bool = True, sighting: bool = False
) -> Question:
    each = f"SELECT w.*, CAST(:priority AS integer) AS priority, CAST(:sighting AS integer) AS sighting FROM ({who}) w"
    return _insertion(
        each,
        {**values, "priority": priority, "sighting": int(sighting)},
        step=int(raises_version),
        each=1 if priority > AGAIN else EACH_TURN,
    )


def _insertion(who: str, values: dict[str, object], *, each: int, step: int = 1) -> Question:
    """Return the statement that marks the rows of `who`: server_id, discord_id, priority, and sighting (0 or 1).

    `each` is how many members of a server share a turn; `step` is by how much versions rise.
    """
    # A fixed order makes overlapping marks wait for each other instead of deadlocking.
    statement = f"""
        WITH marked AS (
        INSERT INTO due (kind, key, priority, due_at, version, seen, attempts, request_id, turn)
        SELECT 'member', w.server_id || ':' || w.discord_id, w.priority, now(), 1, w.sighting, 0,
               CAST(:request AS text),
               (row_number() OVER (PARTITION BY w.server_id ORDER BY w.discord_id) - 1) / :each + 1
        FROM ({who}) w ORDER BY 2
        ON CONFLICT (kind, key) DO UPDATE SET
            version = due.version + :step,
            seen = due.seen + EXCLUDED.seen,
            priority = GREATEST(due.priority, EXCLUDED.priority),
            due_at = LEAST(due.due_at, EXCLUDED.due_at),
            turn = LEAST(due.turn, EXCLUDED.turn),
            attempts = CASE WHEN :step > 0 THEN 0 ELSE due.attempts END,
            request_id = COALESCE(EXCLUDED.request_id, due.request_id)
        RETURNING 1)
        SELECT count(*), CASE WHEN count(*) > 0 THEN pg_notify(:channel, '') END FROM marked
    """
    return statement, {**values, "request": request_ids.current(), "channel": CHANNEL, "each": each, "step": step}
