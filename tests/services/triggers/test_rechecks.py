"""A member's re-check: asked for once a minute, however the clocks went."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from models import transaction
from services.core.actors import Actor
from services.core.errors import TooMany
from services.triggers import rechecks
from tests.support.builders import a_member, a_server

pytestmark = pytest.mark.usefixtures("database")


async def a_member_who_asked() -> tuple[Actor, int]:
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server)
        actor = Actor(0, member.discord_id, "carol")
        await rechecks.ask(db, actor, server.id or 0)
    return actor, server.id or 0


async def asks(actor: Actor, server_id: int) -> None:
    async with transaction() as db:
        await rechecks.ask(db, actor, server_id)


async def test_a_member_who_was_checked_just_now_has_to_wait() -> None:
    actor, server_id = await a_member_who_asked()
    with pytest.raises(TooMany):
        await asks(actor, server_id)


async def test_a_question_by_a_clock_that_was_ahead_lets_nobody_wait_for_days() -> None:
    actor, server_id = await a_member_who_asked()
    async with transaction() as db:
        await db.execute(text("UPDATE event SET at = at + CAST(:ahead AS interval)"), {"ahead": timedelta(days=3)})
    await asks(actor, server_id)
    with pytest.raises(TooMany):
        await asks(actor, server_id)
