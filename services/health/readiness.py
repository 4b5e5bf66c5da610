"""Whether the parts that must work together have started."""

import json
from datetime import datetime
from typing import ClassVar

from sqlalchemy import text

from models import Schedule
from models.db.session import AsyncSession
from services.core.errors import HoldfastError
from services.triggers.gateway_events import BOT_READY
from settings import ROOT, settings


class NotRunning(HoldfastError):
    """The product does not seem to run on this machine."""

    status: ClassVar[int] = 503


def running_database() -> str:
    """Return the database URL for a program started beside the running product.

    DATABASE_URL, or the URL that the supervisor writes to the data directory. Raises NotRunning.
    """
    try:
        noted = json.loads((ROOT / settings().data_dir / "supervisor.lock").read_text())["database_url"]
    except (OSError, ValueError, KeyError, TypeError):
        noted = None
    url = settings().database_url or noted
    if not url:
        raise NotRunning("Holdfast does not run here: start it, or set DATABASE_URL.")
    return str(url)


async def database_answers(db: AsyncSession) -> None:
    """Return if the database answers; otherwise raise the driver's error."""
    await db.execute(text("SELECT 1"))


async def bot_ready(db: AsyncSession, since: datetime | None) -> bool:
    """Return whether the bot has known all its servers, since the given time if there is one."""
    row = await db.get(Schedule, BOT_READY)
    if row is None or row.started_at is None:
        return False
    return since is None or row.started_at >= since
