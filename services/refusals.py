"""How often Discord refused all processes together, so that none of them goes on once that is too much."""

from sqlalchemy import text

from gateways.refusals import WINDOW, Refusals
from models import transaction
from models.session import AsyncSession


async def share(refusals: Refusals) -> None:
    """Tell the others of this process's refusals, and learn of theirs. To be done every few seconds."""
    count = refusals.untold
    async with transaction() as db:
        if count:
            await db.execute(
                text(
                    "INSERT INTO refusal (minute, count) VALUES (date_trunc('minute', now()), :count) "
                    "ON CONFLICT (minute) DO UPDATE SET count = refusal.count + EXCLUDED.count"
                ),
                {"count": count},
            )
        # A minute that has only partly left the window still counts as a whole.
        result = await db.execute(
            text(
                "SELECT COALESCE(sum(count), 0) FROM refusal "
                "WHERE minute > now() - make_interval(secs => :window) - interval '1 minute'"
            ),
            {"window": WINDOW},
        )
        together = int(result.scalar_one())
    refusals.told(count, together)


async def clear(db: AsyncSession) -> None:
    """Forget minutes that no longer count."""
    await db.execute(text("DELETE FROM refusal WHERE minute < now() - interval '1 hour'"))
