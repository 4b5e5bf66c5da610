"""Whether the parts that must work together have come up."""

from datetime import datetime

from sqlalchemy import text

from models import Schedule
from models.database import AsyncSession
from services.guilds import BOT_READY


async def database_answers(db: AsyncSession) -> None:
    """Return if it does; raises what the driver raises if not."""
    await db.execute(text("SELECT 1"))


async def bot_ready(db: AsyncSession, since: datetime | None) -> bool:
    """Whether the bot has known all its servers, at or after the given time if there is one."""
    row = await db.get(Schedule, BOT_READY)
    if row is None or row.started_at is None:
        return False
    return since is None or row.started_at >= since
