"""The people who run a guild are stored in a few statements, however many administrators it has."""

import pytest
from sqlmodel import col, select

from models import Access, Server, transaction
from services.guilds import members
from services.guilds.members import MemberFacts
from services.guilds.role_safety import ADMINISTRATOR
from services.triggers import gateway_events
from services.triggers.gateway_events import GuildFacts, RoleFacts
from tests.support.statements import Statements

pytestmark = pytest.mark.usefixtures("database")
GUILD, OWNER, BOT = "900000000000000001", "900000000000000002", "900000000000000003"


def guild(*admins: str) -> GuildFacts:
    """Return a guild in which everybody is an administrator."""
    role = RoleFacts(GUILD, "@everyone", 0, False, ADMINISTRATOR)
    members = tuple(MemberFacts(one, "somebody", frozenset()) for one in (OWNER, BOT, *admins))
    return GuildFacts(GUILD, "Guild", None, OWNER, BOT, (role,), members)


async def those_who_run_it() -> dict[str, bool]:
    """Return Discord ids, each with whether it is the owner's."""
    async with transaction() as db:
        rows = await db.exec(select(Access).order_by(col(Access.discord_id)))
        return {row.discord_id: row.owner for row in rows.all()}


async def test_a_guild_in_which_2_000_members_are_administrators_takes_a_few_statements() -> None:
    async with transaction() as db:
        db.add(Server(discord_id=GUILD, name="Guild", bot_invited=True))
    many = [str(800_000_000_000_000_000 + number) for number in range(2_000)]
    with Statements() as statements:
        async with transaction() as db:
            await gateway_events.who_runs(db, guild(*many))
    assert statements.count < 10
    found = await those_who_run_it()
    assert len(found) == 2_001
    assert [one for one, owner in found.items() if owner] == [OWNER]
    async with transaction() as db:
        await gateway_events.who_runs(db, guild(many[0]))
    assert await those_who_run_it() == {many[0]: False, OWNER: True}


WHO, ADMIN_ROLES = "900000000000000009", frozenset({"77"})


async def told(*roles: str, admin_roles: frozenset[str] | None = ADMIN_ROLES) -> None:
    """Report a member with these roles, as Discord's event does."""
    async with transaction() as db:
        await gateway_events.member_changed(db, GUILD, MemberFacts(WHO, "x", frozenset(roles)), admin_roles)


async def stored(*roles: str) -> None:
    """Store a member with these roles, as another process that has read them does."""
    async with transaction() as db:
        server = (await db.exec(select(Server))).one()
        await members.keep(db, server.id or 0, [MemberFacts(WHO, "x", frozenset(roles))])


async def test_an_event_changes_who_runs_it_although_the_roles_were_stored_before() -> None:
    async with transaction() as db:
        db.add(Server(discord_id=GUILD, name="Guild", bot_invited=True, owner_id=OWNER))
    await told()
    await stored("77")
    await told("77")
    assert await those_who_run_it() == {WHO: False}
    await told(admin_roles=None)
    assert await those_who_run_it() == {WHO: False}, "without the server's roles nobody is known to have lost it"
    await stored()
    await told()
    assert await those_who_run_it() == {}
