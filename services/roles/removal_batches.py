"""Group removals into batches, to be listed and undone as one."""

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID, uuid4

from models.db.session import AsyncSession

TOGETHER = timedelta(minutes=10)
"""Removals of one role that begin within this time of the first share a batch, whichever worker decides them."""


async def of_removals(db: AsyncSession, roles: Iterable[tuple[int, str]]) -> dict[tuple[int, str], UUID]:
    """Return the batch of each role's next removals: a recent one that was not undone, or a new one.

    The caller holds the lock that `breaker.stop_excess` takes for each of these roles.
    """
    wanted = sorted(set(roles))
    if not wanted:
        return {}
    result = await db.execute(
        """
        WITH wanted AS (
            SELECT * FROM unnest(CAST(:servers AS integer[]), CAST(:roles AS text[])) AS w (server_id, role_id)
        ), open AS (
            SELECT g.server_id, g.role_id, g.batch, g.intended_at AS at
            FROM "grant" g JOIN wanted w USING (server_id, role_id)
            WHERE g.state = 'taking' AND g.batch IS NOT NULL
            UNION ALL
            SELECT e.server_id, e.role_id, e.batch, e.at FROM event e JOIN wanted w USING (server_id, role_id)
            WHERE e.kind = 'role.taken' AND e.batch IS NOT NULL AND e.at > now() - 2 * CAST(:within AS interval)
        )
        SELECT server_id, role_id, batch FROM open
        WHERE NOT EXISTS (SELECT 1 FROM event u WHERE u.batch = open.batch AND u.kind = 'batch.undone')
        GROUP BY server_id, role_id, batch
        -- A time ahead is by a clock that was ahead: such a batch would never end.
        HAVING min(at) BETWEEN now() - CAST(:within AS interval) AND now() + CAST(:within AS interval)
        ORDER BY min(at)
        """,
        {"servers": [server for server, _ in wanted], "roles": [role for _, role in wanted], "within": TOGETHER},
    )
    begun = {(int(server), str(role)): UUID(str(batch)) for server, role, batch in result.all()}
    return {role: begun.get(role) or uuid4() for role in wanted}
