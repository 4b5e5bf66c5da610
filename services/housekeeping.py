"""Letting go of what has ended: sessions, sign-ins that never came back, challenges, answered breakers."""

from sqlalchemy import text

from models.database import AsyncSession


async def clear_expired(db: AsyncSession) -> None:
    """Delete what can no longer be used; the audit log is not touched."""
    await db.execute(text("DELETE FROM session WHERE expires_at < now()"))
    await db.execute(text("DELETE FROM sign_in WHERE expires_at < now()"))
    await db.execute(text("DELETE FROM challenge WHERE expires_at < now() - interval '7 days'"))
    await db.execute(text("DELETE FROM breaker WHERE approved_at < now() - interval '24 hours'"))
