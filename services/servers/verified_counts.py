"""Counts of verified people by server, and of their proofs by day, stored in the database."""

from collections.abc import Iterable
from datetime import date

from models.db.session import AsyncSession

MANY = 1_000
"""Changes from which on it is worthwhile to count them before they are folded."""
# People whose verification may have changed since they were counted, with their counted and their present state. The
# present one is read only of members of the servers in question: changes elsewhere keep nobody waiting.
_CHANGED = """
    WITH stale AS MATERIALIZED (SELECT DISTINCT discord_id FROM verified_stale),
    theirs AS MATERIALIZED (
        SELECT stale.discord_id FROM stale WHERE EXISTS (
            SELECT 1 FROM member m
            WHERE m.discord_id = stale.discord_id AND m.server_id = ANY(CAST(:servers AS integer[])))
    ),
    changed AS MATERIALIZED (
        SELECT v.discord_id, v.servers, v.proved_on, -1 AS step FROM stale
        JOIN verified_person v ON v.discord_id = stale.discord_id
        UNION ALL SELECT discord_id, verified_in(discord_id), NULL, 1 FROM theirs
    )
"""


async def by_server(db: AsyncSession, server_ids: Iterable[int]) -> dict[int, int]:
    """Return how many members of each server have a proved wallet that counts there; servers with none are left out.

    Excludes bots and members who left.
    """
    rows = await db.execute(
        f"""
        {_CHANGED}
        SELECT server_id, sum(total) FROM (
            SELECT server_id, total FROM verified_count WHERE server_id = ANY(CAST(:servers AS integer[]))
            UNION ALL SELECT server_id, step FROM changed, unnest(servers) AS server_id
            WHERE server_id = ANY(CAST(:servers AS integer[]))
        ) c GROUP BY 1 HAVING sum(total) <> 0
        """,
        {"servers": list(server_ids)},
    )
    return {int(server_id): int(total) for server_id, total in rows.all()}


async def people(db: AsyncSession, server_ids: Iterable[int]) -> int:
    """Return how many people are verified in at least one of the servers."""
    found = await db.execute(
        f"""
        {_CHANGED}
        SELECT COALESCE(sum(total), 0) FROM (
            SELECT total FROM audience
            WHERE servers && CAST(:servers AS integer[]) AND day = DATE '1970-01-01'
            UNION ALL SELECT step FROM changed WHERE servers && CAST(:servers AS integer[])
        ) c
        """,
        {"servers": list(server_ids)},
    )
    return int(found.scalar_one())


async def proofs(db: AsyncSession, server_ids: Iterable[int], first: date) -> dict[date, int]:
    """Return, by day since `first`, how many wallets were proved by people verified in one of the servers."""
    rows = await db.execute(
        f"""
        {_CHANGED}
        SELECT day, sum(total) FROM (
            SELECT day, total FROM audience WHERE servers && CAST(:servers AS integer[]) AND day >= :first
            UNION ALL SELECT day, step FROM changed,
            LATERAL unnest(CASE step WHEN 1 THEN proved_on(discord_id) ELSE proved_on END) AS day
            WHERE servers && CAST(:servers AS integer[]) AND day >= :first
        ) c GROUP BY 1 HAVING sum(total) <> 0
        """,
        {"servers": list(server_ids), "first": first},
    )
    return {day: int(total) for day, total in rows.all()}


async def fold(db: AsyncSession) -> int:
    """Recount people with a recorded change; return how many records were used, 0 while another process folds."""
    changes = "SELECT count(*) FROM (SELECT FROM verified_stale LIMIT :most) AS found"
    if int((await db.execute(changes, {"most": MANY})).scalar_one()) >= MANY:
        # The table is nearly always empty. Expecting that, the planner compares each of 100,000 people with each.
        await db.execute("ANALYZE verified_stale")
    return int((await db.execute("SELECT verified_fold()")).scalar_one())


async def rebuild(db: AsyncSession) -> None:
    """Recount everybody; writers of members, wallets and the log are not blocked."""
    await db.execute("SELECT verified_rebuild()")
