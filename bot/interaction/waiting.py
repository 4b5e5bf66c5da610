"""Wait until a re-check is settled, and report its result."""

import asyncio

from bot.interaction.answering import Visit
from bot.messages import words
from bot.messages.replies import Reply
from models import transaction
from services.servers import recheck_report
from services.servers.notices import Meeting

SETTLES_WITHIN, LOOKED_EVERY = 20.0, 0.4
"""Seconds to wait. A longer re-check continues in the background, and /why shows its result."""


async def held(meeting: Meeting) -> frozenset[str]:
    """Return the roles that the member has before the change."""
    async with transaction() as db:
        return await recheck_report.held(db, meeting.actor, meeting.server_id)


async def result(visit: Visit, meeting: Meeting, before: frozenset[str], title: str, text: str = "") -> Reply:
    """Return the differences once everything is settled."""
    loop = asyncio.get_running_loop()
    until = loop.time() + SETTLES_WITHIN
    while loop.time() < until:
        async with transaction() as db:
            if await recheck_report.settled(db, meeting.actor, meeting.server_id):
                break
        await asyncio.sleep(LOOKED_EVERY)
    async with transaction() as db:
        found = await recheck_report.since(db, meeting.actor, meeting.server_id, before)
    return words.outcome(found, title, text)
