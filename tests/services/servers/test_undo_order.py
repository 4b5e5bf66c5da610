"""An undo that gives a role back to many waits for what concerns everybody with the role, and never deadlocks."""

import asyncio
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlmodel import select

from gateways.discord.types import Guild
from models import Event, Grant, Rule, Server, ServerMove, now, transaction
from services.core.actors import Actor
from services.core.errors import Conflict
from services.guilds.permissions import Rights
from services.guilds.role_safety import RoleStanding
from services.roles.moves import lifecycle
from services.rules import pausing
from services.servers import undo
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake
from tests.support.statements import waits_for_a_lock

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
