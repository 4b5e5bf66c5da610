"""Which members of a server we store: none who never used the product and has no role that anything needs."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from bot.gateway.guild_turns import GuildTurns
from bot.gateway.member_events import MemberEvent, MemberEvents
from models import Access, Event, Grant, Member, RoleWatch, Server, User, now, transaction
from services.core.errors import Conflict
from services.engine.previews import plan
from services.guilds.gateway import known_people
from services.guilds.members import MemberFacts
from services.health import provider_records
from services.privacy import retention
from services.runtime import schedules
from services.triggers import gateway_events, member_rereads
from tests.support.statements import waits_for_a_lock

pytestmark = pytest.mark.usefixtures("database")
GUILD, RULED, OTHER, ADMINS = "900000000000000001", "71", "72", "73"
# The reasons to store a person, named after the person; only the stranger has none.
REASONS = ("user", "grant", "watched", "access", "protected", "admin", "stored", "stranger")


async def a_server(guild: str = GUILD, *, watched: str | None = RULED) -> int:
    async with transaction() as db:
        server = Server(discord_id=guild, name="Guild", bot_invited=True, protected_members=["protected"])
        db.add(server)
        await db.flush()
        if watched is not None:
            await known_people.watch(db, server.id or 0, [watched])
        return server.id or 0


async def everybody(server_id: int) -> list[MemberFacts]:
    """Store one person for each reason, and return all of them as Discord lists them."""
    async with transaction() as db:
        db.add(User(discord_id="user", username="user"))
        db.add(Grant(server_id=server_id, discord_id="grant", role_id=OTHER, state="held"))
        db.add(Access(server_id=server_id, discord_id="access"))
        db.add(Member(server_id=server_id, discord_id="stored", name="stored"))
    roles = {"watched": frozenset({RULED, OTHER}), "admin": frozenset({ADMINS}), "stranger": frozenset({OTHER})}
    return [MemberFacts(who, who, roles.get(who, frozenset())) for who in REASONS]


async def stored() -> set[str]:
    async with transaction() as db:
        return set((await db.exec(select(Member.discord_id).where(col(Member.left_at).is_(None)))).all())


async def test_of_a_list_only_those_are_stored_for_whom_there_is_a_reason() -> None:
    people = await everybody(await a_server())
    async with transaction() as db:
        await gateway_events.listed(db, GUILD, people, {ADMINS})
    assert await stored() == set(REASONS) - {"stranger"}


async def written(*events: MemberEvent) -> list[tuple[str, bool]]:
    """Return which of these events are stored, each with whether the person is in the guild."""
    seen = list[tuple[str, bool]]()

    async def apply(guild_id: int, event: MemberEvent) -> None:
        seen.append((event.discord_id, event.facts is not None))

    reported = MemberEvents(GuildTurns(), apply)
    for one in events[:-1]:
        reported._waiting[int(GUILD)].append(one)
    await reported.add(int(GUILD), events[-1])
    return seen


async def test_events_of_strangers_are_dropped_and_those_of_others_come_in_their_order() -> None:
    server_id = await a_server()
    people = {one.discord_id: one for one in await everybody(server_id)}
    nobody = MemberEvent("stranger", people["stranger"], True)
    seen = await written(
        nobody,
        # Only this first event gives a reason to store the person: the later one is about somebody stored.
        MemberEvent("watched", people["watched"], True),
        MemberEvent("stranger", None, False),
        MemberEvent("watched", None, False),
        MemberEvent("admin", people["admin"], True, is_admin=True),
        MemberEvent("user", people["user"], True),
        nobody,
    )
    assert seen == [("watched", True), ("watched", False), ("admin", True), ("user", True)]


async def test_an_event_that_fails_does_not_lose_those_after_it() -> None:
    server_id = await a_server()
    people = {one.discord_id: one for one in await everybody(server_id)}
    tried = list[str]()

    async def apply(guild_id: int, event: MemberEvent) -> None:
        tried.append(event.discord_id)
        raise ValueError(event.discord_id)

    reported = MemberEvents(GuildTurns(), apply)
    reported._waiting[int(GUILD)].append(MemberEvent("user", people["user"], True))
    with pytest.raises(ExceptionGroup) as caught:
        await reported.add(int(GUILD), MemberEvent("grant", people["grant"], True))
    assert (tried, len(caught.value.exceptions)) == (["user", "grant"], 2)


async def test_an_event_of_a_guild_that_is_not_stored_yet_is_not_dropped() -> None:
    event = MemberEvent("stranger", MemberFacts("stranger", "S", frozenset()), True)
    assert await written(event) == [("stranger", True)]


async def unlisted(server_id: int, role_id: str) -> bool:
    async with transaction() as db:
        return await known_people.unlisted(db, server_id, [role_id]) == [role_id]


async def to_list() -> list[str]:
    async with transaction() as db:
        return await known_people.to_list(db)


async def lists(server_id: int) -> None:
    """Read the guild's member list, as the bot does."""
    async with transaction() as db:
        began = await gateway_events.list_begins(db, GUILD)
    assert await to_list() == [GUILD], "another process reads it if this one ends now"
    async with transaction() as db:
        assert await gateway_events.list_ended(db, GUILD, began) == 0


async def test_a_role_that_a_rule_or_a_move_names_has_the_list_read() -> None:
    server_id = await a_server(watched=None)
    assert await to_list() == []
    await lists(server_id)
    assert await to_list() == []
    async with transaction() as db:
        await db.execute(text(_RULE), {"server": server_id, "role": RULED})
    assert (await to_list(), await unlisted(server_id, RULED)) == ([GUILD], True)
    await lists(server_id)
    assert (await to_list(), await unlisted(server_id, RULED)) == ([], False)
    async with transaction() as db:
        await db.execute(text("UPDATE rule SET role_id = :role"), {"role": OTHER})
    assert await unlisted(server_id, OTHER)
    await lists(server_id)
    async with transaction() as db:
        await db.execute(
            text(
                "INSERT INTO server_move (server_id, state, roles, begins_at, until, created_at) "
                "VALUES (:server, 'open', ARRAY[:one, :two], now(), now(), now())"
            ),
            {"server": server_id, "one": RULED, "two": ADMINS},
        )
    assert await to_list() == [GUILD]
    assert not await unlisted(server_id, RULED), "its holders are stored already"


_RULE = """
    INSERT INTO rule (server_id, name, role_id, role_name, role_color, expression, verification_type,
        contract_address, blockchain, min_tokens, token_ids, removal_mode, removal_hours, state, created_by,
        created_at, updated_at)
    VALUES (:server, 'R', :role, 'Holder', '#000000', '{}', 'basic', '', 'base', 1, '{}', 'now', 0, 'active', '0',
        now(), now())
"""


async def test_a_role_is_watched_as_long_as_something_needs_it() -> None:
    server_id = await a_server(watched=OTHER)
    async with transaction() as db:
        await db.execute(text(_RULE), {"server": server_id, "role": RULED})
    async with transaction() as db:
        await db.execute(text("UPDATE role_watch SET at = at - interval '2 days'"))
        await known_people.watch(db, server_id, [ADMINS])
    async with transaction() as db:
        await retention.housekeep(db)
    async with transaction() as db:
        assert set((await db.exec(select(RoleWatch.role_id))).all()) == {RULED, ADMINS}


async def test_members_of_an_older_version_are_deleted_in_parts_where_nothing_needs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_people, "DELETED_AT_ONCE", 2)
    server_id, second = await a_server(), await a_server("900000000000000002", watched=None)
    people = {one.discord_id: one for one in await everybody(server_id)}
    async with transaction() as db:
        await db.execute(text("DELETE FROM member"))
        kept = {*REASONS} - {"stranger", "stored", "admin"}
        for who in (*sorted(kept), "met", "in the log"):
            roles = sorted(people[who].roles) if who in people else []
            met = now() if who == "met" else None
            db.add(Member(server_id=server_id, discord_id=who, name=who, roles=roles, met_at=met))
        db.add(Event(server_id=server_id, kind="role.taken", subject="in the log"))
        for place in range(5):
            for one in (server_id, second):
                db.add(Member(server_id=one, discord_id=f"stranger{place}", name="S", roles=[OTHER]))
        await schedules.ensure(db, retention.STRANGERS, timedelta(hours=1))
    left, turns = list[int](), 0
    while not left or left[-1] > len(kept) + 2:
        assert (turns := turns + 1) < 20
        async with transaction() as db:
            await retention.forget_strangers(db)
        left.append(len(await stored_rows()))
    assert max(before - after for before, after in zip([17, *left], left, strict=False)) <= 2
    assert await stored_rows() == {*kept, "met", "in the log"}


async def test_somebody_who_uses_the_bot_while_strangers_are_deleted_stays() -> None:
    """Their roles could not be given until they used it once more."""
    server_id = await a_server()
    async with transaction() as db:
        db.add_all(Member(server_id=server_id, discord_id=who, name=who) for who in ("new", "stranger"))

    async def forget() -> None:
        async with transaction() as db:
            await known_people.forget_strangers(db, server_id - 1)

    async with transaction() as db:
        await gateway_events.member_met(db, GUILD, MemberFacts("new", "New", frozenset()))
        forgetting = asyncio.create_task(forget())
        async with asyncio.timeout(60):
            while not forgetting.done() and not await waits_for_a_lock():
                await asyncio.sleep(0.01)
    await forgetting
    assert await stored() == {"new"}


async def stored_rows() -> set[str]:
    async with transaction() as db:
        rows = (await db.exec(select(Member.discord_id, Member.server_id))).all()
        return {who if not who.startswith("stranger") else f"{who}:{server}" for who, server in rows}


async def test_somebody_who_uses_the_bot_for_the_first_time_is_looked_for_in_the_other_servers() -> None:
    await a_server()
    await a_server("900000000000000002")
    facts = MemberFacts("new", "New", frozenset())
    async with transaction() as db:
        await gateway_events.member_met(db, GUILD, facts)
    assert await stored() == {"new"}
    async with transaction() as db:
        (found,) = await member_rereads.never_read(db, 10)
        assert (found.guild_id, found.discord_id) == ("900000000000000002", "new")
        await member_rereads.was_read(db, found)
    async with transaction() as db:
        await gateway_events.member_met(db, GUILD, MemberFacts("new", "Newer", frozenset()))
        assert await member_rereads.never_read(db, 10) == []


async def test_a_preview_of_taking_over_waits_for_the_list_of_those_who_have_the_role(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "LISTED_EVERY", 0.0)
    server_id = await a_server(watched=None)
    async with transaction() as db:
        await plan._list_holders(db, server_id, [RULED])
        assert await known_people.to_list(db) == [], "without a bot nobody can read it"
        await provider_records.keep(db, [provider_records.bot_is(True, None)])
    monkeypatch.setattr(plan, "LISTED_WITHIN", 0.0)
    async with transaction() as db:
        with pytest.raises(Conflict):
            await plan._list_holders(db, server_id, [RULED])
    await lists(server_id)
    async with transaction() as db:
        await plan._list_holders(db, server_id, [RULED])
