"""Removals that are called off: the grant is held, and notes that its role was never given unless it is there."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlmodel import select

from models import Grant, transaction
from models.db.session import AsyncSession
from services.core import queue
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake


async def called_off(db: AsyncSession, *, given: bool, there: bool) -> tuple[str, Mapping[str, Any]]:
    """Return the state and the evidence of a grant after its removal was called off."""
    server, role_id = await a_server(db), snowflake()
    member = await a_member(db, server, roles=(role_id,) if there else ())
    grant = await a_grant(db, member, await a_rule(db, server, role_id), state="taking")
    grant.evidence = {} if given else {"given": False}
    await db.flush()
    await queue.mark_member(db, member.server_id, member.discord_id, queue.CHANGED)
    await queue.call_off_removals_from(db, member.discord_id)
    found = await db.exec(select(Grant.state, Grant.evidence).where(Grant.discord_id == member.discord_id))
    return found.one()


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("there", [True, False])
async def test_the_note_that_a_role_was_never_given_stays_until_it_is_there(
    database: str, given: bool, there: bool
) -> None:
    async with transaction() as db:
        noted = {} if given or there else {"given": False}
        assert await called_off(db, given=given, there=there) == ("held", noted)
