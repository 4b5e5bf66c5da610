"""A part of a jobs process that outlives the database's absence, whenever that begins: also before its first work."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import psycopg
from sqlalchemy.exc import DBAPIError

log = logging.getLogger("holdfast.jobs")

AGAIN_SECONDS = 1.0


async def lasting(life: Callable[[], Awaitable[None]]) -> None:
    """Live again and again: what a life had in hand when the database went is claimed again by the next one."""
    while True:
        try:
            await life()
        except (DBAPIError, psycopg.OperationalError) as fault:
            said = fault.orig if isinstance(fault, DBAPIError) else fault
            log.warning("the database did not answer, the work goes on when it does: %s", str(said).splitlines()[0])
        await asyncio.sleep(AGAIN_SECONDS)
