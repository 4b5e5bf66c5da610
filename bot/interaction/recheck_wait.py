"""Wait until a re-check is complete, and report its result."""

import asyncio

from bot.messages import sentences
from bot.messages.reply import Reply
from models import transaction
from services.guilds.members import MemberContext
from services.servers import recheck_report

SETTLES_WITHIN, LOOKED_EVERY = 20.0, 0.4
"""Seconds to wait. A longer re-check continues in the background, and /why shows its result."""


async def held(member: MemberContext) -> frozenset[str]:
    """Return the roles that the member has at this moment, before a change."""
    async with transaction() as db:
        return await recheck_report.held_role_ids(db, member.actor, member.server_id)


async def result(member: MemberContext, before: frozenset[str], title: str, text: str = "") -> Reply:
    """Return the changes of roles since `before`, once all decisions are carried out or after SETTLES_WITHIN."""
    loop = asyncio.get_running_loop()
    until = loop.time() + SETTLES_WITHIN
    while loop.time() < until:
        async with transaction() as db:
            if await recheck_report.settled(db, member.actor, member.server_id):
                break
        await asyncio.sleep(LOOKED_EVERY)
    async with transaction() as db:
        found = await recheck_report.report_since(db, member.actor, member.server_id, before)
    return sentences.outcome(found, title, text)
