"""Read servers' audit logs to find out who gave or took the roles of our rules."""

import logging

from gateways import gateways
from models import transaction
from services.roles import rival_names
from services.runtime.retries import own_fault_recorded, repeat_forever

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS = 2.0
"""Pause when no name is wanted; a new entry appears in Discord's logs within moments."""


async def run() -> None:
    """Look names up until cancelled; one process at a time reads a server's log."""
    await repeat_forever(once, log, "names will be looked up again", PAUSE_SECONDS)


async def once() -> bool:
    """Look up the names of one server's moves; return False if there are none to look up."""
    async with transaction() as db:
        search = await rival_names.claim(db)
    if search is None:
        return False

    async def record(_fault: Exception) -> None:
        async with transaction() as db:
            await rival_names.postpone(db, search)

    async with own_fault_recorded(log, "failed to look up names server=%s", search.server_id, record=record):
        said = await rival_names.read(gateways(), search)
        async with transaction() as db:
            await rival_names.keep(db, search, said)
    return True
