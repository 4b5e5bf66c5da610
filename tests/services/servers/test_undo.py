"""An undo of a batch of the log: what it reads, and that it is done once."""

from uuid import uuid4

import pytest
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy import text
from sqlmodel import select

from models import Event, transaction
from services.core import audit
from services.core.actors import Actor
from services.core.errors import BatchNotFound, Conflict
from services.guilds.permissions import Rights
from services.servers import undo
from tests.support.builders import a_member, a_rule, a_server, snowflake

pytestmark = pytest.mark.usefixtures("database")
ADMIN = Actor(0, snowflake(), "ada")


async def test_one_line_of_a_batch_is_read_however_many_it_has_and_a_batch_is_undone_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(undo, "_grantable", lambda *_: "Role")
    batch, loaded = uuid4(), list[Event]()
    async with transaction() as db:
        server, role_id = await a_server(db), snowflake()
        rule = await a_rule(db, server, role_id)
        about = {"server_id": server.id, "role_id": role_id, "batch": batch}
        people = [(await a_member(db, server)).discord_id for _ in range(20)]
        await audit.record_all(db, [audit.line("role.taken", subject=who, **about) for who in people])
        await audit.record(db, audit.line("role.taken", subject=snowflake(), rule_id=rule.id, **about))
    rights, server_id = Rights(server, None, None, None), server.id or 0

    def load(target: Event, *_: object) -> None:
        loaded.append(target)

    sqlalchemy_event.listen(Event, "load", load)
    try:
        async with transaction() as db:
            done = await undo._undo(db, rights, ADMIN, server_id, batch)
    finally:
        sqlalchemy_event.remove(Event, "load", load)
    assert (done.members, len(loaded)) == (20, 1)
    async with transaction() as db:
        (line,) = (await db.exec(select(Event).where(Event.kind == "batch.undone"))).all()
        assert (line.rule_id, line.data["of"], line.data["ruleIds"]) == (rule.id, "role.taken", [rule.id])
        with pytest.raises(Conflict, match="undone before"):
            await undo._undo(db, rights, ADMIN, server_id, batch)
        with pytest.raises(BatchNotFound):
            await undo._undo(db, rights, ADMIN, server_id, uuid4())


async def test_an_undo_reads_no_lines_of_other_batches_however_many_are_older(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo, "_grantable", lambda *_: "Role")
    older, batch = 2_000, uuid4()
    async with transaction() as db:
        server = await a_server(db)
        about = {"server_id": server.id, "role_id": snowflake()}
        await audit.record_all(db, [audit.line("role.given", subject=snowflake(), **about) for _ in range(older)])
        who = (await a_member(db, server)).discord_id
        await audit.record_all(db, [audit.line("role.taken", subject=who, batch=batch, **about) for _ in range(300)])
        await db.execute(text("ANALYZE event"))
    async with transaction() as db:
        # Of so few rows, the planner would read all at once.
        await db.execute(text("SET LOCAL enable_seqscan = off"))
        read = text("SELECT sum(idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname LIKE 'event%'")
        before = (await db.execute(read)).scalar_one()
        await undo._undo(db, Rights(server, None, None, None), ADMIN, server.id or 0, batch)
        assert (await db.execute(read)).scalar_one() - before < older
