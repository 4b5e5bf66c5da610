"""An undo that gives a role back to many waits for what concerns everybody with the role, and never deadlocks."""

import asyncio
from datetime import timedelta
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlmodel import select

from gateways import gateways
from gateways.discord.types import Guild
from models import Event, Grant, Member, Rule, Server, ServerMove, now, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.errors import Conflict
from services.guilds import permissions
from services.guilds.permissions import Rights
from services.guilds.role_safety import RoleStanding
from services.roles.moves import lifecycle, messages
from services.rules import pausing
from services.servers import undo
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake
from tests.support.statements import Step, meet, waits_for_a_lock

pytestmark = pytest.mark.usefixtures("database")
BATCH, ADMIN = uuid4(), Actor(0, snowflake(), "ada")


async def give_back(step: str, server: Server, rule: Rule) -> None:
    standing = RoleStanding((1, 0), 0)
    guild = Guild(server.discord_id, "A server", None, snowflake(), ())
    rights = Rights(server, guild, standing, standing)
    async with transaction() as db:
        # As for large tables, which are read in their own order: an index of small ones gives the keys in theirs.
        for way in ("indexscan", "indexonlyscan", "bitmapscan", "nestloop", "mergejoin"):
            await db.execute(text(f"SET LOCAL enable_{way} = off"))
        match step:
            case "of a move":
                move = ServerMove(server_id=server.id or 0, begins_at=now(), until=now(), roles=[rule.role_id])
                await lifecycle._give_back(db, rights, ADMIN, move)
            case "of removals":
                event = Event(kind="role.taken", server_id=server.id, role_id=rule.role_id, batch=BATCH)
                await undo.give_back(db, rights, ADMIN, event)
            case _:
                event = Event(kind="role.lost", server_id=server.id, role_id=rule.role_id, batch=BATCH)
                await undo.give_again(db, rights, ADMIN, event)


@pytest.mark.parametrize("step", ["of a move", "of removals", "of losses"])
async def test_an_undo_waits_for_the_deletion_of_the_role_and_never_deadlocks(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    # What Discord shows of the role does not matter here.
    monkeypatch.setattr(undo, "_grantable", lambda *_: "Role")
    monkeypatch.setattr(lifecycle, "find", lambda *_: "a role")
    monkeypatch.setattr(lifecycle, "refusal", lambda *_: None)
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        people = [await a_member(db, server, roles=(rule.role_id,)) for _ in range(2)]
        first, last = sorted(people, key=lambda member: member.discord_id)
        first.name = "moved behind the other one in its table"
        await db.flush()
        for member in (last, first):  # the tables hold them in this order, and a deletion locks them in the other
            grant = await a_grant(db, member, rule, state="lost" if step == "of losses" else "taking")
            grant.batch, grant.had_before = BATCH, True
            about = {"server_id": server.id, "role_id": rule.role_id, "subject": member.discord_id, "batch": BATCH}
            db.add(Event(kind="role.lost" if step == "of losses" else "role.taken", **about))
    async with transaction() as db:
        await db.exec(select(Grant).where(Grant.discord_id == first.discord_id).with_for_update())
        undoing = asyncio.create_task(give_back(step, server, rule))
        async with asyncio.timeout(60):
            while not await waits_for_a_lock():
                assert not undoing.done(), undoing
                await asyncio.sleep(0.01)
        await pausing.role_gone(db, server.id or 0, rule.role_id)
    if step == "of a move":
        await undoing
    else:
        with pytest.raises(Conflict, match="Nobody is left"):
            await undoing
    async with transaction() as db:
        assert (await db.exec(select(Grant))).all() == []


@pytest.mark.parametrize("state", ["open", "approved"])
async def test_a_move_that_changes_or_is_undone_waits_for_the_deletion_of_the_role_and_never_deadlocks(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """The removal of one member is called off, and the grant of another one changes after that.

    The grant of a third one, who simply has the role, is not locked.
    """
    standing = RoleStanding((1, 0), 0)
    for module, name, value in (
        (lifecycle, "find", "a role"), (lifecycle, "refusal", None), (lifecycle, "rank_refusal", None)
    ):  # fmt: skip
        monkeypatch.setattr(module, name, lambda *_, value=value: value)
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        server_id, roles, until = server.id or 0, [rule.role_id], now() + timedelta(days=1)
        people = [await a_member(db, server, roles=(rule.role_id,)) for _ in range(2)]
        first, last = sorted(people, key=lambda member: member.discord_id)
        for member, now_is in ((first, "held"), (last, "taking")):
            grant = await a_grant(db, member, rule, state=now_is)
            grant.had_before, grant.no_since, grant.gift_since = True, now(), now()
        holder = await a_member(db, server, roles=(rule.role_id,))
        await a_grant(db, holder, rule)
        move = ServerMove(server_id=server_id, begins_at=now(), until=until, roles=roles, state=state)
        move.approved_at = now()
        db.add(move)
    found = Rights(server, Guild(server.discord_id, "A server", None, snowflake(), ()), standing, standing)
    for module, name, value in ((permissions, "require_admin", found), (messages, "plan", None),
                                (messages, "change", True)):  # fmt: skip
        monkeypatch.setattr(module, name, AsyncMock(return_value=value))

    async def change(db: AsyncSession) -> None:
        if state == "open":
            order = lifecycle.MoveOrder(until=until, roles=roles)
            await lifecycle.begin_or_change(db, gateways(), ADMIN, server_id, order)
        else:
            await lifecycle.undo(db, gateways(), ADMIN, server_id)
        async with transaction() as other:
            free = await other.exec(select(Grant.discord_id).with_for_update(skip_locked=True))
            assert free.all() == [holder.discord_id]

    def grant_of(member: Member) -> Step:
        return lambda db: db.exec(select(Grant).where(Grant.discord_id == member.discord_id).with_for_update())

    await meet(change, grant_of(first), grant_of(last))
    async with transaction() as db:
        changed = select(Grant).where(Grant.discord_id != holder.discord_id).order_by(Grant.discord_id)
        grants = (await db.exec(changed)).all()
    is_gift = state == "approved"
    assert [(grant.state, grant.gift_since is not None) for grant in grants] == [
        ("held", is_gift), ("giving" if is_gift else "held", is_gift),
    ]  # fmt: skip
