"""Gateway events are stored, even while the database does not answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from time import monotonic
from types import SimpleNamespace
from typing import Any

import nextcord
import pytest
from sqlalchemy import text
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree

from bot.events import Events
from bot.gateway import guild_turns, member_lists, role_checks
from bot.gateway.guild_turns import GuildTurns
from gateways import gateways
from models import transaction
from services.guilds.gateway import known_people
from services.guilds.members import MemberFacts
from services.health import readiness
from services.runtime.task_cancellation import stop
from services.triggers import gateway_events
from tests.jobs.conftest import product as product
from tests.jobs.town import until

AWAY = [
    OperationalError("", None, Exception("the server closed the connection")),
    InterfaceError("", None, Exception("the connection is closed")),
    NoneFree("no connection became free"),
]


@pytest.mark.parametrize("fault", AWAY, ids=lambda fault: type(fault).__name__)
async def test_no_event_is_lost_while_the_database_is_away(
    product: None, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    monkeypatch.setattr(guild_turns, "DATABASE_PAUSE", 0.01)
    told: list[str] = []

    async def write(db: Any) -> None:
        told.append("written" if told else "tried")
        if told == ["tried"]:
            raise fault

    await GuildTurns().write_in_turn(1, write)
    assert told == ["tried", "written"]


@dataclass
class SomeMember:
    """The parts of a library's member that the product reads."""

    id: int
    guild: Any = None
    name: str = "somebody"
    nick: str | None = None
    global_name: str | None = None
    pending: bool = False
    bot: bool = False
    avatar: None = None
    discriminator: str = "0"
    joined_at: None = None
    _roles: tuple[int, ...] = ()


@dataclass
class SomeGuild:
    """The parts of a library's guild that the product reads; `gate` opens when Discord lists its members."""

    id: int
    people: int
    fails: bool | Exception = False
    gate: Callable[[], Any] | None = None
    name: str = "A guild"
    icon: None = None
    unavailable: bool = False
    member_count: int | None = None
    features: tuple[str, ...] = ()
    preferred_locale: None = None
    roles: tuple[Any, ...] = ()
    cache: dict[int, SomeMember] = field(default_factory=dict[int, SomeMember])
    failed: int = 0
    """How often the list failed."""

    def __post_init__(self) -> None:
        first = self.id * 1_000_000
        self.cache = {first + place: SomeMember(first + place, self) for place in range(self.people)}

    @property
    def me(self) -> SomeMember:
        return self.cache[self.owner_id]

    @property
    def owner_id(self) -> int:
        return self.id * 1_000_000

    async def fetch_members(self, limit: None) -> AsyncIterator[SomeMember]:
        if self.fails:
            self.failed += 1
            raise self.fails if isinstance(self.fails, Exception) else OSError("no answer")
        for member in list(self.cache.values()):
            yield member


class SomeBot:
    """The library's bot, in these guilds."""

    shard_count = 1

    def __init__(self, *here: SomeGuild) -> None:
        self.guilds = list(here)

    def get_guild(self, guild_id: int) -> SomeGuild | None:
        return next((guild for guild in self.guilds if guild.id == guild_id), None)

    def is_closed(self) -> bool:
        return False

    def is_ready(self) -> bool:
        return True


async def all_known(last: int = 5) -> None:
    """Everybody in a guild here has used the bot: only such members are stored. `last` is of the first guild."""
    async with transaction() as db:
        await db.execute(
            text(
                'INSERT INTO "user" (discord_id, username, connected, created_at, updated_at) '
                "SELECT guild * 1000000 + place, 'somebody', false, now(), now() "
                "FROM generate_series(1, 10) guild, generate_series(0, 5) place UNION ALL "
                "SELECT 1000000 + place, 'somebody', false, now(), now() "
                "FROM generate_series(6, cast(:last as int)) place UNION ALL "
                "SELECT guild * 1000000 + 999999, 'somebody', false, now(), now() FROM generate_series(1, 2) guild"
            ),
            {"last": last},
        )


async def members_of(guild: SomeGuild) -> int:
    async with transaction() as db:
        count = await db.execute(
            text(
                "SELECT count(*) FROM member m JOIN server s ON s.id = m.server_id "
                "WHERE s.discord_id = :guild AND m.left_at IS NULL"
            ),
            {"guild": str(guild.id)},
        )
        return int(count.scalar_one())


async def test_no_guild_waits_for_another_ones_list(product: None) -> None:
    await all_known(30_000)
    large, small = SomeGuild(1, 30_000), SomeGuild(2, 3)
    cog = Events(SomeBot(large, small))  # pyright: ignore[reportArgumentType]
    cog.lists.begin(small)  # pyright: ignore[reportArgumentType]

    async def listed(guild: SomeGuild, least: int) -> bool:
        return await members_of(guild) >= least

    try:
        await until(lambda: listed(small, 3))
        cog.lists.begin(large)  # pyright: ignore[reportArgumentType]
        await until(lambda: listed(large, 1))
        for guild in (small, large):
            newcomer = SomeMember(guild.owner_id + 999_999, guild)
            guild.cache[newcomer.id] = newcomer
            facts = MemberFacts(str(newcomer.id), newcomer.name, frozenset())
            await cog.on_member_told(guild.id, newcomer.id, facts, True)
        assert await members_of(small) == 4
        assert await members_of(large) < 30_001, "its own events do not wait for the end of the list either"
        await until(lambda: listed(large, 30_001))
        await until(lambda: _idle(cog))
        del large.cache[large.owner_id + 5]
        await asyncio.wait([cog.lists.begin(large)])  # pyright: ignore[reportArgumentType]
        assert await members_of(large) == 30_000
    finally:
        await stop(*cog.tasks())


async def _idle(cog: Events) -> bool:
    return not cog.tasks()


async def test_a_list_that_replaces_another_is_still_older_than_the_events_meanwhile(
    product: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await all_known()
    guild = SomeGuild(1, 3)
    cog = Events(SomeBot(guild))  # pyright: ignore[reportArgumentType]
    person, begun = str(guild.owner_id + 1), list[asyncio.Task[None]]()
    closing, listed = asyncio.Event(), asyncio.Event()

    async def parts(_guild: SomeGuild) -> bool:
        begun.append(cog.lists.running[guild.id])
        try:
            await listed.wait()
        finally:
            if asyncio.current_task() is begun[0]:
                await closing.wait()
        await cog.lists._write_part(guild.id, [MemberFacts(person, "before", frozenset())])
        return True

    async def reads(count: int) -> bool:
        return len(begun) == count

    async def name() -> str:
        async with transaction() as db:
            found = await db.execute(text("SELECT name FROM member WHERE discord_id = :who"), {"who": person})
            return str(found.scalar_one())

    monkeypatch.setattr(cog.lists, "_list_parts", parts)
    try:
        cog.lists.begin(guild)  # pyright: ignore[reportArgumentType]
        await until(lambda: reads(1))
        tried = cog.lists.begin(guild)  # pyright: ignore[reportArgumentType]
        await until(lambda: reads(2))
        closing.set()
        await asyncio.wait([begun[0]])
        await cog.on_member_told(guild.id, int(person), MemberFacts(person, "after", frozenset()), True)
        listed.set()
        await tried
        assert await name() == "after"
    finally:
        await stop(*cog.tasks())


async def test_a_guild_that_invites_the_bot_while_it_starts_is_not_one_that_it_has_left(product: None) -> None:
    """The database may be away for long after the bot knows its guilds."""
    first, new = SomeGuild(1, 1), SomeGuild(2, 1)
    bot = SomeBot(first)
    cog = Events(bot)  # pyright: ignore[reportArgumentType]

    async def invited() -> bool:
        async with transaction() as db:
            found = await db.execute(text("SELECT bot_invited FROM server WHERE discord_id = '2'"))
            return bool(found.scalar_one_or_none())

    try:
        async with cog.turns.of(0):
            starting = asyncio.create_task(cog.on_ready())
            await asyncio.sleep(0)
            bot.guilds.append(new)
            await cog.on_guild_join(new)  # pyright: ignore[reportArgumentType]
            await until(invited)
        await starting
        assert await invited()
    finally:
        await stop(*cog.tasks())


@pytest.mark.parametrize("what", ["list", "check"])
async def test_a_guild_that_removes_the_bot_while_it_is_looked_at_stays_removed(
    product: None, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    guild, asked, said = SomeGuild(1, 1), asyncio.Event(), asyncio.Event()
    bot = SomeBot(guild)
    cog = Events(bot)  # pyright: ignore[reportArgumentType]

    async def gone_roles(*_: object) -> tuple[()]:
        asked.set()
        await said.wait()
        return ()

    async def stored() -> tuple[bool, int]:
        async with transaction() as db:
            question = "SELECT bot_invited, (SELECT count(*) FROM guild_picture) FROM server WHERE discord_id = '1'"
            invited, snapshots = (await db.execute(text(question))).one()
            return invited, snapshots

    try:
        await cog.lists.begin(guild)  # pyright: ignore[reportArgumentType]
        await until(lambda: _idle(cog))
        assert await stored() == (True, 1)
        for module in (member_lists, role_checks):
            monkeypatch.setattr(module, "gone_roles", gone_roles)
        if what == "list":
            cog.lists.begin(guild)  # pyright: ignore[reportArgumentType]
        else:
            cog.checks.changed(guild.id)
        await asked.wait()
        bot.guilds.remove(guild)
        await cog.on_guild_remove(guild)  # pyright: ignore[reportArgumentType]
        said.set()
        await until(lambda: _idle(cog))
        assert await stored() == (False, 0)
    finally:
        await stop(*cog.tasks())


async def test_a_guild_that_cannot_be_listed_keeps_nobody_waiting(product: None) -> None:
    await all_known()
    began = monotonic()
    here = [SomeGuild(1, 3, fails=True), *(SomeGuild(place, 3) for place in range(2, 8))]
    cog = Events(SomeBot(*here))  # pyright: ignore[reportArgumentType]
    try:
        await cog.on_ready()
        async with transaction() as db:
            assert await readiness.bot_ready(db, monotonic() - began)
        assert [await members_of(guild) for guild in here] == [0, *[3] * 6]
        here[0].fails = False
        await until(lambda: _all_there(here[0]))
    finally:
        await stop(*cog.tasks())


@pytest.mark.parametrize("refusal", [nextcord.Forbidden, nextcord.NotFound])
async def test_a_refused_list_is_asked_for_again_and_counts_as_a_refusal(
    product: None, monkeypatch: pytest.MonkeyPatch, refusal: type[nextcord.HTTPException]
) -> None:
    await all_known()
    monkeypatch.setattr(member_lists, "FIRST_PAUSE", 0.01)
    answer: Any = SimpleNamespace(status=403 if refusal is nextcord.Forbidden else 404, reason="no")
    refused = SomeGuild(1, 3, fails=refusal(answer, {"code": 50001, "message": "Missing Access"}))
    cog = Events(SomeBot(refused))  # pyright: ignore[reportArgumentType]
    try:
        await cog.lists.begin(refused)  # pyright: ignore[reportArgumentType]
        assert await members_of(refused) == 0
        # It may have been asked again meanwhile.
        assert gateways().discord.refusals.untold == (refused.failed if refusal is nextcord.Forbidden else 0)
        assert refused.failed
        refused.fails = False
        await until(lambda: _all_there(refused))
    finally:
        await stop(*cog.tasks())


async def test_a_guild_that_is_always_refused_keeps_no_session_from_being_stored(product: None) -> None:
    answer: Any = SimpleNamespace(status=403, reason="no")
    refused = SomeGuild(1, 3, fails=nextcord.Forbidden(answer, {"code": 50001, "message": "Missing Access"}))
    cog = Events(SomeBot(refused))  # pyright: ignore[reportArgumentType]
    cog.opened = set()
    try:
        tried = cog.lists.begin(refused)  # pyright: ignore[reportArgumentType]
        assert cog.is_busy(0)
        await tried
        assert not cog.is_busy(0)
        async with transaction() as db:
            assert await known_people.to_list(db) == ["1"], "who resumes the session reads the list"
    finally:
        await stop(*cog.tasks())


async def test_lists_that_are_refused_everywhere_are_asked_for_a_few_at_a_time(
    product: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer: Any = SimpleNamespace(status=403, reason="no")
    refusal = nextcord.Forbidden(answer, {"code": 50001, "message": "Missing Access"})
    monkeypatch.setattr(member_lists, "REFUSED_APART", 600.0)
    here = [SomeGuild(place, 3, fails=refusal) for place in range(1, 40)]
    cog = Events(SomeBot(*here))  # pyright: ignore[reportArgumentType]
    try:
        async with asyncio.timeout(30):
            await asyncio.wait([cog.lists.begin(one) for one in here[:2]])  # pyright: ignore[reportArgumentType]
        late = [cog.lists.begin(one) for one in here[2:]]  # pyright: ignore[reportArgumentType]
        await until(lambda: _waiting(cog))
        assert not any(one.done() for one in late)
        assert gateways().discord.refusals.untold == 2
    finally:
        await stop(*cog.tasks())


async def _waiting(cog: Events) -> bool:
    return cog.lists._room.locked()


async def _all_there(guild: SomeGuild) -> bool:
    return await members_of(guild) == guild.people


async def test_roles_that_move_together_are_judged_once(product: None, monkeypatch: pytest.MonkeyPatch) -> None:
    guild, judged = SomeGuild(1, 3), list[str]()

    async def judge(db: Any, facts: gateway_events.GuildFacts, *_gone: object) -> None:
        judged.append(facts.id)

    monkeypatch.setattr(gateway_events, "check_roles", judge)
    cog = Events(SomeBot(guild))  # pyright: ignore[reportArgumentType]
    for _ in range(250):
        await cog.on_guild_update(guild, guild)  # pyright: ignore[reportArgumentType]
    await until(lambda: _idle(cog))
    assert judged == ["1"]
