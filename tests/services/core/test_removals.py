"""Removals that are called off: what is held afterwards is there, and what was never given leaves no trace."""

import pytest
from sqlmodel import select

from models import Grant, Unanswered, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake


async def called_off(db: AsyncSession, *, given: bool, there: bool, unanswered: bool = False) -> list[str]:
    """Return the state of a grant, if it still exists, after its removal was called off."""
    server, role_id = await a_server(db), snowflake()
    member = await a_member(db, server, roles=(role_id,) if there else ())
    grant = await a_grant(db, member, await a_rule(db, server, role_id), state="taking")
    grant.evidence = {} if given else {"given": False}
    if unanswered:
        line = {"server_id": member.server_id, "discord_id": member.discord_id, "role_id": role_id}
        db.add(Unanswered(**line, giving=True, at=now()))
    await db.flush()
    await queue.mark_member(db, member.server_id, member.discord_id, queue.CHANGED)
    await queue.call_off_removals_from(db, member.discord_id)
    states = await db.exec(select(Grant.state).where(Grant.discord_id == member.discord_id))
    return list(states.all())


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("there", [True, False])
async def test_a_role_that_was_never_given_and_is_not_there_is_not_held(
    database: str, given: bool, there: bool
) -> None:
    async with transaction() as db:
        assert await called_off(db, given=given, there=there) == ([] if not given and not there else ["held"])


async def test_one_that_discord_may_still_give_is_kept_until_a_reconcile_knows(database: str) -> None:
    async with transaction() as db:
        assert await called_off(db, given=False, there=False, unanswered=True) == ["held"]
