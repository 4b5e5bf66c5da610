"""Another bot or a person moves a role of ours: who did it, and the truce that ends a fight."""

import uuid
from datetime import timedelta

import pytest
from sqlmodel import col, select

from jobs import rival_namer
from models import Event, RivalMove, Truce, now, transaction
from services.guilds import rivals
from services.guilds.members import MemberFacts
from services.privacy import erasure
from services.roles.rival_names import NO_PERMISSION, NOT_FOUND, PAUSES, VIEW_AUDIT_LOG
from services.triggers import gateway_events
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, looked_at, taken
from tests.jobs.writing.test_forgetting import actor

MANAGE_ROLES = 1 << 28


async def rival_bot(town: Town) -> str:
    """Add another application's bot and return its name."""
    name = f"rival{uuid.uuid4().hex[:6]}"
    town.people[name] = await town.call("people", username=name, bot=True)
    await town.call("members", guild=town.name, user=name, action="join")
    return name


async def may_read_the_log(town: Town, allowed: bool = True) -> None:
    own = next(role for role in (await town.guild())["roles"] if role["managed"])
    bits = MANAGE_ROLES | (VIEW_AUDIT_LOG if allowed else 0)
    await town.call("guilds", guild=town.name, action="edit_role", role=own["id"], permissions=str(bits))
    await town.see()


async def moves_by_others(town: Town) -> list[RivalMove]:
    async with transaction() as db:
        rows = await db.exec(
            select(RivalMove)
            .where(RivalMove.server_id == town.server_id)
            .order_by(col(RivalMove.at), col(RivalMove.id))
        )
        return list(rows.all())


async def truces(town: Town) -> list[Truce]:
    async with transaction() as db:
        return list((await db.exec(select(Truce).where(Truce.server_id == town.server_id))).all())


async def moves(town: Town, rival: str, action: str, who: str = "carol") -> None:
    """Move the role as the rival, and send the gateway's event to the product."""
    await town.call(
        "members", guild=town.name, user=town.people[who]["id"], action=action, role="Holder",
        by=town.people[rival]["id"],
    )  # fmt: skip
    await told(town, who)


async def told(town: Town, who: str) -> None:
    """Handle the gateway's event about a member in their present state."""
    guild = await town.guild()
    member = next(one for one in guild["members"] if one["user_id"] == town.people[who]["id"])
    facts = MemberFacts(member["user_id"], member["username"], frozenset(member["roles"]))
    async with transaction() as db:
        await gateway_events.member_changed(db, guild["id"], facts)


async def lost(town: Town, times: int) -> None:
    async def noted() -> bool:
        async with transaction() as db:
            rows = await db.exec(select(Event.id).where(Event.server_id == town.server_id, Event.kind == "role.lost"))
            return len(rows.all()) == times

    await until(noted)


async def fought_twice(town: Town, rival: str) -> None:
    """Give Holder to carol twice, with the rival taking it each time."""
    await town.buys("carol")
    await town.prove("carol")
    await town.rule("Holder")
    await given(town)
    await moves(town, rival, "remove_role")
    await lost(town, 1)
    await moves(town, rival, "add_role")
    await looked_at(town)
    await moves(town, rival, "remove_role")
    await looked_at(town)
    await given(town)
    await moves(town, rival, "remove_role")
    await lost(town, 2)


async def test_a_fight_ends_after_the_second_reversal_and_names_the_rival(town: Town, engine: Engine) -> None:
    rival = await rival_bot(town)
    await may_read_the_log(town)
    async with engine():
        await fought_twice(town, rival)
        (truce,) = await truces(town)
        assert truce.discord_id == town.people["carol"]["id"]
        start = await town.mark()
        await town.rule("Holder", 1)  # a newer rule would give a lost role back
        await looked_at(town)
        assert await town.writes(start) == []
        assert not await town.has("carol", "Holder")
        assert await rival_namer.once()
        assert not await rival_namer.once(), "everything is named"
        found = await moves_by_others(town)
        told = [(one.taken, one.naming, one.actor_name, one.actor_bot, one.against) for one in found]
        by = ("named", rival, True)
        assert told == [(True, *by, True), (False, *by, False), (True, *by, False), (True, *by, True)]
        async with transaction() as db:
            row = await db.get_one(Truce, (town.server_id, truce.discord_id, truce.role_id))
            row.until = now() - timedelta(seconds=1)
            db.add(row)
        async with transaction() as db:
            assert await rivals.end_expired(db) == 1
        await given(town)
        await moves(town, rival, "remove_role")
        await lost(town, 3)
        assert await truces(town) == [], "one reversal is no fight"
        await looked_at(town)
        assert not await town.has("carol", "Holder")


async def test_a_role_that_a_rival_gives_back_is_not_taken_for_ever(town: Town, engine: Engine) -> None:
    rival = await rival_bot(town)
    await may_read_the_log(town)
    await moves(town, rival, "add_role", "dave")
    async with engine():
        await town.prove("dave")
        await town.rule("Holder", takes_over=True)
        await taken(town, "dave")
        await until(lambda: event_count(town, "role.taken", 1))
        await moves(town, rival, "add_role", "dave")
        await looked_at(town)
        await taken(town, "dave")
        await until(lambda: event_count(town, "role.taken", 2))
        start = await town.mark()
        await moves(town, rival, "add_role", "dave")
        await looked_at(town)
        await until(lambda: has_truce(town))
        await looked_at(town)
        assert "DELETE" not in await town.writes(start)
        assert await town.has("dave", "Holder")


async def event_count(town: Town, kind: str, count: int) -> bool:
    async with transaction() as db:
        rows = await db.exec(select(Event.id).where(Event.server_id == town.server_id, Event.kind == kind))
        return len(rows.all()) == count


async def has_truce(town: Town) -> bool:
    return len(await truces(town)) == 1


async def test_without_the_permission_the_name_is_unknown_until_the_bot_has_it(town: Town) -> None:
    await may_read_the_log(town, False)
    await town.rule("Holder")
    await moves(town, "ada", "add_role")
    start = await town.mark()
    assert await rival_namer.once()
    (move,) = await moves_by_others(town)
    assert (move.naming, move.reason, move.taken) == ("unknown", NO_PERMISSION, False)
    assert not [one for one in await town.requests(start, "discord") if "audit-logs" in one["path"]]
    assert not await rival_namer.once()
    await may_read_the_log(town)
    assert await rival_namer.once()
    (move,) = await moves_by_others(town)
    assert (move.naming, move.actor_id, move.actor_bot) == ("named", town.people["ada"]["id"], False)


async def test_a_log_that_cannot_be_read_says_nothing_and_is_read_again(town: Town) -> None:
    await may_read_the_log(town)
    await town.rule("Holder")
    await moves(town, "ada", "add_role")
    path = {"target": "discord", "method": "GET", "path": "*/audit-logs*"}
    await town.call("faults", **path, kind="answer", status=200, body="no log", seconds=300)
    assert await rival_namer.once()
    (move,) = await moves_by_others(town)
    assert (move.naming, move.attempts) == ("open", 0)
    await town.heal()
    await due_now(town)
    assert await rival_namer.once()
    assert [one.naming for one in await moves_by_others(town)] == ["named"]


async def due_now(town: Town) -> None:
    async with transaction() as db:
        for row in (await db.exec(select(RivalMove).where(RivalMove.server_id == town.server_id))).all():
            row.next_at = now() - timedelta(seconds=1)
            db.add(row)


@pytest.mark.parametrize("against", [True, False])
async def test_what_the_log_does_not_have_stays_unknown_or_did_not_happen(town: Town, against: bool) -> None:
    await may_read_the_log(town)
    await town.rule("Holder")
    async with transaction() as db:
        move = rivals.Reversal(town.server_id, town.people["carol"]["id"], await town.role("Holder"), taken=True)
        await rivals.record(db, [move], against=against)
    for _ in range(len(PAUSES) + 1):
        await due_now(town)
        assert await rival_namer.once()
    left = [(one.naming, one.reason) for one in await moves_by_others(town)]
    assert left == ([("unknown", NOT_FOUND)] if against else [])


@pytest.mark.parametrize("returned", [False, True])
async def test_a_log_brings_nobodys_name_back_who_deleted_their_data(town: Town, returned: bool) -> None:
    await may_read_the_log(town)
    await town.rule("Holder")
    await town.prove("dave")
    await moves(town, "dave", "add_role", "carol")
    await moves(town, "ada", "add_role", "dave")
    dave = await actor(town, "dave")
    async with transaction() as db:
        await erasure.forget(db, dave)
    async with transaction() as db:
        assert await erasure.finish(db) == 1
    if returned:
        await town.prove("dave")
    assert await rival_namer.once()
    found = {one.discord_id: (one.naming, one.actor_name, one.actor_id) for one in await moves_by_others(town)}
    if returned:
        assert found.keys() == {town.people["carol"]["id"], dave.discord_id}
        return
    (((naming, name, who),),) = [found.values()]
    assert (naming, name, str(who).startswith("forgotten-")) == ("named", None, True)
    assert found.keys() == {town.people["carol"]["id"]}


async def test_moves_of_a_role_that_a_forgotten_member_still_has_go_with_it(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    carol = await actor(town)
    async with transaction() as db:
        await erasure.forget(db, carol)
    await moves(town, "ada", "remove_role")
    await looked_at(town)
    assert len(await moves_by_others(town)) == 1
    async with transaction() as db:
        assert await erasure.finish(db) == 1
    assert await moves_by_others(town) == []
