"""The buttons that end a truce, on the Health tab and on a member's page."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlmodel import select

from models import Truce, now, transaction
from state.server.health import ServerHealthState
from state.server.members import MembersState
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn
from tests.state.towns import opened


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town owned by ada, where a truce leaves the role Holder of carol and dave alone."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        await made.rule("Holder")
        role_id = await made.role("Holder")
        async with transaction() as db:
            for who in ("carol", "dave"):
                db.add(
                    Truce(
                        server_id=made.server_id, discord_id=made.people[who]["id"], role_id=role_id,
                        until=now() + timedelta(hours=3),
                    )
                )  # fmt: skip
        yield made


async def test_a_members_page_and_health_end_truces(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    role_id, carol = await town.role("Holder"), town.people["carol"]["id"]
    members = await opened(tab, MembersState, town.server_id, "members")
    await tab.run(members.toggle(carol))
    assert [role.alone for role in members.why] == [True]
    await tab.run(members.follow_again(carol, role_id))
    assert [role.alone for role in members.why] == [False]
    async with transaction() as db:
        assert (await db.exec(select(Truce.discord_id))).all() == [town.people["dave"]["id"]]

    health = await opened(tab, ServerHealthState, town.server_id, "health")
    (line,) = [line for line in health.here if line.role]
    assert (line.role, line.title) == (role_id, "Role Holder left alone")
    await tab.run(health.follow_again(role_id))
    assert [line for line in health.here if line.role] == []
    async with transaction() as db:
        assert (await db.exec(select(Truce))).all() == []


async def test_a_truce_is_ended_for_the_member_under_whom_it_was_pressed(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    role_id, carol, dave = await town.role("Holder"), town.people["carol"]["id"], town.people["dave"]["id"]
    members = await opened(tab, MembersState, town.server_id, "members")
    await tab.run(members.toggle(carol))
    # Dave is opened, and the button below carol is pressed before the answer is there.
    await tab.run(members.toggle(dave))
    await tab.run(members.follow_again(carol, role_id))
    async with transaction() as db:
        assert (await db.exec(select(Truce.discord_id))).all() == [dave]
    assert [role.alone for role in members.why] == [True], "dave's own is not ended"
