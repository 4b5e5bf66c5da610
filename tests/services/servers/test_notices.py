"""What a member reads above the next reply of the bot."""

from typing import Any

import pytest

from models import Notice, now, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.engine import grace_warnings
from services.guilds.members import MemberContext
from services.servers import notices
from tests.services.privacy.test_preferences import somebody
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake

ROLE = "[Claim your airdrop](https://phish.example/claim) **now**"


@pytest.mark.parametrize("kind", ["role.taken", "role.lost"])
async def test_a_roles_name_is_never_a_link_in_a_notice(database: str, kind: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        data = {"roleName": ROLE}
        db.add(Notice(discord_id=one.actor.discord_id, server_id=one.server.id, kind=kind, data=data))
        member = MemberContext(one.actor, one.server.id or 0, one.server.discord_id, one.server.name)
        (told,) = await notices.waiting(db, member)
    assert "](" not in told.text.replace("\\]", "")
    assert "https://" not in told.text
    assert "\\*\\*now" in told.text


async def _member_with_a_rule(db: AsyncSession):
    server = await a_server(db)
    member = await a_member(db, server)
    rule = await a_rule(db, server, snowflake())
    actor = Actor(0, member.discord_id, member.name)
    return member, rule, MemberContext(actor, server.id or 0, server.discord_id, server.name)


def _about(to: MemberContext, kind: str, role_id: str, name: str = "Whale", **data: Any) -> Notice:
    told = {"roleId": role_id, "roleName": name, **data}
    return Notice(discord_id=to.actor.discord_id, server_id=to.server_id, kind=kind, data=told)


@pytest.mark.parametrize("state", ["held", "giving"])
@pytest.mark.parametrize("kind", ["role.taken", "role.lost"])
async def test_a_role_that_came_back_is_not_told_as_gone(database: str, kind: str, state: str) -> None:
    async with transaction() as db:
        member, rule, to = await _member_with_a_rule(db)
        db.add_all([_about(to, kind, rule.role_id), _about(to, kind, snowflake(), "Collector")])
        await a_grant(db, member, rule, state=state)
        (told,) = await notices.waiting(db, to)
        assert "Collector" in told.text


async def test_a_role_that_was_taken_several_times_is_told_once(database: str) -> None:
    async with transaction() as db:
        _, rule, to = await _member_with_a_rule(db)
        db.add_all([_about(to, "role.taken", rule.role_id) for _ in range(3)])
        await db.flush()
        told = await notices.waiting(db, to)
        assert len(told) == 1
        await notices.mark_shown(db, told)
        assert await notices.waiting(db, to) == []


async def test_the_end_of_an_earlier_grace_time_is_not_told(database: str) -> None:
    async with transaction() as db:
        member, rule, to = await _member_with_a_rule(db)
        ends = ("2026-03-01T10:00:00+00:00", "2026-04-01T10:00:00+00:00")
        for at in ends:
            db.add(_about(to, grace_warnings.KIND, rule.role_id, at=at))
            await db.flush()
        grant = await a_grant(db, member, rule)
        grant.no_since = now()
        (told,) = await notices.waiting(db, to)
        assert "1 April" in told.text
