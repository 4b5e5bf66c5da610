"""Role writes in doubt: Discord did not answer and may still carry them out, so the opposite change waits.

Otherwise a removal that takes effect after the role was given back would look as if somebody else had taken it. A
removal is recorded before it is sent, because the process may end before the answer arrives. Gifts that may reach a
member who left and came back are recorded when they leave (`services/guilds/members.py`).
"""

from collections.abc import Sequence
from datetime import timedelta

from models import GrantKey
from models.db.session import AsyncSession

LATE = timedelta(seconds=60)
"""How long after our timeout Discord may still carry out a request. We assume this; Discord promises nothing."""

STILL_OPEN = """
    EXISTS (SELECT 1 FROM unanswered u WHERE u.server_id = g.server_id AND u.discord_id = g.discord_id
            AND u.role_id = g.role_id AND u.giving <> (g.state = 'giving') AND u.at > now() - CAST(:late AS interval))
"""
"""SQL condition on a grant `g` with a pending change: Discord may still carry out the opposite. `late` is LATE."""

OF_REMOVAL = """
    EXISTS (SELECT 1 FROM unanswered u WHERE u.server_id = "grant".server_id AND u.discord_id = "grant".discord_id
            AND u.role_id = "grant".role_id AND NOT u.giving)
"""
"""SQL condition on a grant: a removal of ours is in doubt."""


async def begin_removal(db: AsyncSession, line: GrantKey) -> bool:
    """Record that a removal is about to be sent; return False if an earlier one is still in doubt."""
    result = await db.execute(
        "WITH earlier AS (SELECT at FROM unanswered WHERE server_id = :server_id AND discord_id = :discord_id "
        "AND role_id = :role_id AND NOT giving) "
        "INSERT INTO unanswered (server_id, discord_id, role_id, giving, at) "
        "VALUES (:server_id, :discord_id, :role_id, false, now()) "
        "ON CONFLICT (server_id, discord_id, role_id, giving) DO UPDATE SET at = now() "
        "RETURNING NOT EXISTS (SELECT 1 FROM earlier WHERE at > now() - CAST(:late AS interval))",
        {**line._asdict(), "late": LATE},
    )
    return bool(result.scalar_one())


async def clear_doubt(db: AsyncSession, line: GrantKey) -> None:
    """Record that a removal is no longer in doubt: it was answered, or the role was given after it."""
    await db.execute(
        "DELETE FROM unanswered "
        "WHERE server_id = :server_id AND discord_id = :discord_id AND role_id = :role_id AND NOT giving",
        line._asdict(),
    )


async def removals(db: AsyncSession, lines: Sequence[GrantKey]) -> set[GrantKey]:
    """Return the lines for which a removal of ours is in doubt: if the role is gone, we took it."""
    if not lines:
        return set()
    result = await db.execute(
        "SELECT u.server_id, u.discord_id, u.role_id FROM unanswered u "
        "JOIN unnest(CAST(:servers AS integer[]), CAST(:people AS text[]), CAST(:roles AS text[])) "
        "AS l (server_id, discord_id, role_id) USING (server_id, discord_id, role_id) WHERE NOT u.giving",
        dict(zip(("servers", "people", "roles"), map(list, zip(*lines, strict=True)), strict=True)),
    )
    return {GrantKey(*line) for line in result.all()}


async def record_unanswered(db: AsyncSession, line: GrantKey, *, giving: bool) -> None:
    """Record that a write was sent just now and not answered."""
    await db.execute(
        "INSERT INTO unanswered (server_id, discord_id, role_id, giving, at) "
        "VALUES (:server_id, :discord_id, :role_id, :giving, now()) "
        "ON CONFLICT (server_id, discord_id, role_id, giving) DO UPDATE SET at = now()",
        {**line._asdict(), "giving": giving},
    )


async def clear(db: AsyncSession) -> None:
    """Delete writes that can no longer happen."""
    await db.execute("DELETE FROM unanswered WHERE at < now() - interval '1 hour'")
