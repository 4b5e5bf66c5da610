"""Whether everything that was started is at work."""

import asyncio
import os
from datetime import UTC, datetime

from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse, Response

from models import DatabaseUrlMissing, now, reading
from services.health import readiness

router = APIRouter(tags=["health"])
_PATIENCE = 2.0
"""Seconds for the database to answer."""


@router.head("/health", include_in_schema=False)
@router.get("/health")
async def look() -> Response:
    """`healthy` once the database answers and, where the supervisor runs the bot, the bot knows its servers."""
    if await _ready():
        return JSONResponse({"status": "healthy", "timestamp": now().isoformat()})
    return JSONResponse({"status": "starting"}, status_code=503, headers={"Retry-After": "1"})


async def _ready() -> bool:
    try:
        async with asyncio.timeout(_PATIENCE), reading() as db:
            await readiness.database_answers(db)
            return not os.environ.get("HOLDFAST_SUPERVISED") or await readiness.bot_ready(db, _started())
    except (SQLAlchemyError, DatabaseUrlMissing, OSError, TimeoutError):
        return False


def _started() -> datetime | None:
    """When the supervisor started everything, if it says."""
    text = os.environ.get("HOLDFAST_STARTED")
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
