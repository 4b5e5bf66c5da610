"""Automatic pauses end when their cause does, and not before."""

import pytest
from sqlalchemy import text

from models import Rule, transaction
from services.rules import pausing
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, open_intents

pytestmark = pytest.mark.usefixtures("database")


async def test_a_member_in_screening_keeps_no_refused_role_paused() -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, "7")
        lurker, holder = await a_member(db, server, wallet=address()), await a_member(db, server, wallet=address())
        lurker.pending = True
        db.add(lurker)
        waiting = await a_grant(db, lurker, rule, state="giving")
        waiting.next_at = waiting.created_at
        await a_grant(db, holder, rule)
        await db.flush()
        # Discord refused the removal of the holder's role.
        await pausing.refused(db, server.id or 0, "7", "Missing Permissions")
        await db.execute(text("UPDATE role_refusal SET next_at = now() - interval '1 day'"))
    async with transaction() as db:
        assert await open_intents(db, 10, []) == [], "nothing is tried for somebody in screening"
        resumed = await pausing.retry_refused(db)
    async with transaction() as db:
        assert (resumed, (await db.get_one(Rule, rule.id)).state) == (1, "active")


async def test_a_rule_beyond_the_limits_stays_paused_when_the_bot_leaves_and_comes_back() -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, "7")
        await pausing.pause_rules(db, server.id or 0, [rule.id or 0], "too many", pausing.TOO_MANY)
        await pausing.pause_all(db, server.id or 0, pausing.AWAY_REASON, pausing.AWAY)
        await pausing.resume_role(db, server.id or 0, "7")
    async with transaction() as db:
        found = await db.get_one(Rule, rule.id)
        assert (found.state, found.pause_cause) == ("paused", pausing.TOO_MANY)
