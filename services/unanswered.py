"""Role writes that Discord did not answer: it may carry them out yet, so nothing opposite is sent for a while.

Otherwise a removal that lands after the role was given back would look as if somebody else had taken it.
"""

from datetime import timedelta

from sqlalchemy import text

from models.database import AsyncSession

LATE = timedelta(seconds=60)
"""How long after we gave up waiting Discord may still do what it was asked; our assumption, it promises nothing."""

STILL_OPEN = """
    EXISTS (SELECT 1 FROM unanswered u WHERE u.server_id = g.server_id AND u.discord_id = g.discord_id
            AND u.role_id = g.role_id AND u.giving <> (g.state = 'giving') AND u.at > now() - CAST(:late AS interval))
"""
"""Of a grant `g` with an intent: whether the opposite may be carried out yet; `late` is LATE."""


async def note(db: AsyncSession, server_id: int, discord_id: str, role_id: str, *, giving: bool) -> None:
    """A write was sent just now and not answered."""
    await db.execute(
        text(
            "INSERT INTO unanswered (server_id, discord_id, role_id, giving, at) "
            "VALUES (:server, :who, :role, :giving, now()) "
            "ON CONFLICT (server_id, discord_id, role_id, giving) DO UPDATE SET at = now()"
        ),
        {"server": server_id, "who": discord_id, "role": role_id, "giving": giving},
    )


async def clear(db: AsyncSession) -> None:
    """Forget what cannot happen any more."""
    await db.execute(text("DELETE FROM unanswered WHERE at < now() - interval '1 hour'"))
