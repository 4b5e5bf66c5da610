"""What the product does and shows without the Server Members Intent."""

from collections.abc import Iterator

import pytest
from sqlmodel import select

from gateways import gateways
from gateways.discord.types import UserGuild
from gateways.transport import provider_reports
from models import Member, transaction
from services.core.actors import Actor
from services.guilds import members_intent, permissions
from services.guilds.members import MemberFacts
from services.health import monitoring, provider_records
from services.runtime import schedules
from services.servers import servers
from services.triggers import member_rereads
from services.triggers.member_rereads import KnownMember
from settings import settings
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, snowflake

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def by_choice(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A deployment whose operator does without the intent."""
    monkeypatch.setenv("MEMBERS_INTENT", "off")
    settings.cache_clear()
    yield
    settings.cache_clear()


def test_nothing_is_said_of_a_review_before_it_is_near() -> None:
    assert members_intent.review_warning(members_intent.WARNED_FROM - 1) == ""
    said = members_intent.review_warning(members_intent.WARNED_FROM)
    assert said.startswith("The bot's servers have up to 8,000 members together. From 10,000 users on Discord reviews")


async def heard(reason: str | None, *, connected: bool = True) -> bool:
    async with transaction() as db:
        await provider_records.keep(db, [provider_records.bot_is(connected, reason)])
        return await members_intent.hears_members(db)


async def test_what_the_bot_reports_says_whether_members_are_heard() -> None:
    async with transaction() as db:
        assert await members_intent.hears_members(db)
    assert await heard(None)
    assert not await heard(members_intent.NOT_TOLD)
    assert await heard(None)
    assert not await heard(members_intent.NOT_ASKED)
    provider_reports.read_off()


@pytest.mark.parametrize("count", [7_999, 8_000])
async def test_health_says_that_a_review_is_near(count: int) -> None:
    async with transaction() as db:
        for number, here in ((count - 1, True), (1, True), (5_000, False)):
            (await a_server(db, bot_invited=here)).member_count = number
        await provider_records.keep(db, [provider_records.bot_is(True)])
        said = (await monitoring.view(db)).bot.text
    assert ("reviews" in said) is (count >= members_intent.WARNED_FROM)
    provider_reports.read_off()


async def test_without_the_intent_by_choice_health_is_good_and_says_so(by_choice: None) -> None:
    async with transaction() as db:
        await provider_records.keep(db, [provider_records.bot_is(True, members_intent.told_without_intent())])
        bot = (await monitoring.view(db)).bot
    assert (bot.state, members_intent.NOT_ASKED in bot.text) == ("good", True)
    provider_reports.read_off()


async def test_known_people_are_read_once_a_sweep_and_strangers_never() -> None:
    async with transaction() as db:
        server, other = await a_server(db), await a_server(db)
        rule = await a_rule(db, server, snowflake())
        with_wallet, with_role = await a_member(db, server, wallet=address()), await a_member(db, server)
        await a_grant(db, with_role, rule)
        await a_member(db, server)
        elsewhere = await a_member(db, other, wallet=address())
        assert await member_rereads.to_read(db, 10) == [], "before the first sweep"
    async with transaction() as db:
        await schedules.ensure(db, schedules.SWEEP, schedules.APART)
        await schedules.began(db, schedules.SWEEP, 3)
    async with transaction() as db:
        found = await member_rereads.to_read(db, 10)
        assert {one.discord_id for one in found} == {one.discord_id for one in (with_wallet, with_role, elsewhere)}
        assert {one.guild_id for one in await member_rereads.to_read(db, 10, [other.discord_id])} == {server.discord_id}
        assert len(await member_rereads.to_read(db, 1)) == 1
        for one in found[:2]:
            await member_rereads.was_read(db, one)
        assert await member_rereads.to_read(db, 10) == found[2:]


async def test_somebody_who_signs_in_is_stored_where_they_are_and_their_roles_are_read() -> None:
    async with transaction() as db:
        server = await a_server(db)
        known = await a_member(db, server, roles=("7",))
        await member_rereads.met_elsewhere(db, known.discord_id, "somebody else", [server.id or 0])
        new = snowflake()
        await member_rereads.met_elsewhere(db, new, "new", [server.id or 0])
    async with transaction() as db:
        rows = {row.discord_id: row for row in (await db.exec(select(Member))).all()}
    assert (rows[known.discord_id].name, rows[known.discord_id].roles) == ("somebody", ["7"])
    assert (rows[new].name, rows[new].roles, rows[new].seen_at.year) == ("new", [], 1970)
    one = KnownMember(server.id or 0, server.discord_id, new)
    async with transaction() as db:
        assert await member_rereads.differs(db, one.server_id, MemberFacts(new, "new", frozenset({"7"})))
        assert await member_rereads.first_met(db, one.server_id, new)
        assert not await member_rereads.first_met(db, one.server_id, new)
        assert not await member_rereads.differs(db, one.server_id, MemberFacts(new, "new", frozenset()))


@pytest.mark.parametrize("is_heard", [True, False])
async def test_signing_in_shows_where_somebody_is(monkeypatch: pytest.MonkeyPatch, is_heard: bool) -> None:
    who = Actor(1, snowflake(), "new")
    async with transaction() as db:
        here, without_bot = await a_server(db), await a_server(db, bot_invited=False)
        await provider_records.keep(db, [provider_records.bot_is(True, None if is_heard else members_intent.NOT_TOLD)])
    provider_reports.read_off()
    listed = [UserGuild(one.discord_id, "A server", None, owner=False, permissions=0) for one in (here, without_bot)]

    async def own_guilds(*_: object, **__: object) -> list[UserGuild]:
        return listed

    monkeypatch.setattr(permissions, "own_guilds", own_guilds)
    async with transaction() as db:
        assert await servers.sync(db, gateways(), who) == 0
        rows = (await db.exec(select(Member).where(Member.discord_id == who.discord_id))).all()
    assert [row.server_id for row in rows] == [here.id]
