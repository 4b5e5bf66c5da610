"""The servers that a person runs are stored in a few statements, however many there are."""

import pytest
from sqlmodel import col, select

from gateways import gateways
from gateways.discord.types import UserGuild
from models import Access, Server, transaction
from services.core.actors import Actor
from services.guilds import permissions
from services.servers import servers
from tests.support.builders import a_server, snowflake
from tests.support.statements import Statements

pytestmark = pytest.mark.usefixtures("database")
ADMINISTRATOR = 1 << 3


async def runs(monkeypatch: pytest.MonkeyPatch, who: Actor, *listed: UserGuild) -> int:
    """Have Discord list these guilds to the person; return the number of statements in which they are stored."""

    async def own_guilds(*_: object, **__: object) -> list[UserGuild]:
        return list(listed)

    monkeypatch.setattr(permissions, "own_guilds", own_guilds)
    async with transaction() as db:
        with Statements() as statements:
            assert await servers.sync(db, gateways(), who) == sum(guild.is_admin for guild in listed)
    return statements.count


async def test_a_person_who_runs_many_servers_takes_no_more_statements_than_one_of_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = Actor(1, snowflake(), "few"), Actor(2, snowflake(), "many")
    async with transaction() as db:
        stored = [await a_server(db) for _ in range(50)]
    listed = [UserGuild(one.discord_id, one.name, None, owner=False, permissions=ADMINISTRATOR) for one in stored]
    assert await runs(monkeypatch, many, *listed) == await runs(monkeypatch, few, *listed[:2])
    async with transaction() as db:
        rows = (await db.exec(select(Access.server_id).where(Access.discord_id == many.discord_id))).all()
    assert set(rows) == {one.id for one in stored}


async def test_what_discord_says_now_replaces_what_it_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    who = Actor(1, snowflake(), "somebody")
    async with transaction() as db:
        first, second, third = [await a_server(db) for _ in range(3)]

    def listed(server: Server, *, owner: bool = False, permissions: int = ADMINISTRATOR) -> UserGuild:
        return UserGuild(server.discord_id, server.name, None, owner=owner, permissions=permissions)

    async def stored() -> list[tuple[int, bool]]:
        async with transaction() as db:
            rows = await db.exec(
                select(Access.server_id, Access.owner)
                .where(Access.discord_id == who.discord_id)
                .order_by(col(Access.server_id))
            )
            return [(server_id, owner) for server_id, owner in rows.all()]

    await runs(monkeypatch, who, listed(first), listed(second, owner=True), listed(third, permissions=0))
    assert await stored() == [(first.id, False), (second.id, True)]
    await runs(monkeypatch, who, listed(first, owner=True), listed(second, permissions=0), listed(third))
    assert await stored() == [(first.id, True), (third.id, False)]
