"""Letting go of what has ended: sessions, journeys, challenges, members who left, answered breakers, old readings."""

from sqlalchemy import text

from models.database import AsyncSession
from services import following, traits


async def clear_expired(db: AsyncSession) -> None:
    """Delete what can no longer be used; the audit log is not touched."""
    await db.execute(text("DELETE FROM session WHERE expires_at < now()"))
    await db.execute(text("DELETE FROM sign_in WHERE expires_at < now()"))
    await db.execute(text("DELETE FROM challenge WHERE expires_at < now() - interval '7 days'"))
    await following.clear_sightings(db)
    await traits.forget_old(db)
    # Who comes back is told of anew; the privacy policy names the time.
    await db.execute(text("DELETE FROM member WHERE left_at < now() - interval '30 days'"))
    await db.execute(text("DELETE FROM tally WHERE observed_at < now() - interval '30 days'"))
    await db.execute(text("DELETE FROM token_trail WHERE updated_at < now() - interval '180 days'"))
    for table in ("delegation", "delegation_read"):
        await db.execute(
            text(
                f"DELETE FROM {table} d WHERE NOT EXISTS "
                "(SELECT 1 FROM wallet w WHERE w.family = 'evm' AND w.address = d.delegate)"
            )
        )
    await db.execute(text("DELETE FROM breaker WHERE approved_at < now() - interval '24 hours'"))
