"""Moves of rivals whose names are looked up: what another transaction has locked waits for the next turn."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import select

from gateways.discord.audit_log import RoleEntry
from gateways.transport.errors import ProviderError
from models import Farewell, Grant, Member, RivalMove, Truce, now, transaction
from models.db.session import AsyncSession
from services.accounts import users
from services.core.actors import Actor
from services.guilds import members, rivals
from services.guilds.rivals import Reversal
from services.privacy import erasure
from services.roles import rival_names
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake
from tests.support.statements import Step, meet, waits_for_a_lock

pytestmark = pytest.mark.usefixtures("database")


AT = datetime(2026, 1, 2, tzinfo=UTC)


def an_open_move(at: int = 0) -> rival_names.OpenMove:
    """Return a move noticed `at` seconds after AT; our own change before it was 120 seconds before AT."""
    return rival_names.OpenMove(at, "carol", "7", True, AT + timedelta(seconds=at), AT - timedelta(seconds=120))


def entries(*at: int, taken: bool = True) -> list[RoleEntry]:
    """Return entries of the log, so many seconds after AT, each named by its time."""
    role, none = frozenset({"7"}), frozenset[str]()
    changed = (none, role) if taken else (role, none)
    return [RoleEntry(str(one), AT + timedelta(seconds=one), None, None, False, "carol", *changed) for one in at]


@pytest.mark.parametrize(
    ("at", "named"),
    [((-20, -10, 5), -10), ((5, 50), 5), ((0, 1), 0), ((60,), 60), ((61,), None), ((-125,), -125), ((-126,), None)],
)
def test_a_move_is_named_by_the_newest_entry_before_it_or_else_by_the_next(
    at: tuple[int, ...], named: int | None
) -> None:
    for listed in (at, at[::-1]):
        found = rival_names.match([an_open_move()], entries(*listed))
        assert [one.id for one in found.values()] == ([] if named is None else [str(named)])
    assert rival_names.match([an_open_move()], entries(*at, taken=False)) == {}


def test_each_entry_names_one_move_the_newest_first() -> None:
    moves = [an_open_move(1), an_open_move(2)]
    assert {at: one.id for at, one in rival_names.match(moves, entries(0, -1)).items()} == {2: "0", 1: "-1"}
    assert {at: one.id for at, one in rival_names.match(moves, entries(0)).items()} == {2: "0"}


async def claimed() -> list[int]:
    async with transaction() as db:
        search = await rival_names.claim(db)
        return [] if search is None else [move.id for move in search.moves]


async def test_moves_are_claimed_without_waiting_for_those_that_are_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rival_names, "MOST_MOVES", 2)
    async with transaction() as db:
        server = await a_server(db)
        moves = [
            RivalMove(
                server_id=server.id or 0, discord_id=snowflake(), role_id="7", taken=True, at=now(), next_at=now(),
                naming="open", against=True,
            )
            for _ in range(4)
        ]  # fmt: skip
        db.add_all(moves)
    first, second, third, locked = (move.id or 0 for move in moves)

    def lock(move_id: int) -> Any:
        return select(RivalMove.id).where(RivalMove.id == move_id).with_for_update()

    async with transaction() as db:
        await db.exec(lock(locked))
        claiming = asyncio.create_task(claimed())
        async with asyncio.timeout(60):
            while not claiming.done() and not await waits_for_a_lock():
                await asyncio.sleep(0.01)
        await db.exec(lock(first))
    assert await claiming == [first, second]
    assert await claimed() == [third, locked]
    assert await claimed() == []


@pytest.mark.parametrize(
    "step", ["refused", "silent", "not there", "later", "too old", "counted", "let be", "forgotten", "forgotten since"]
)
async def test_a_write_to_many_moves_locks_them_in_the_order_of_their_ids(step: str) -> None:
    async with transaction() as db:
        server, role_id, rival = await a_server(db), snowflake(), snowflake()
        moves = list[RivalMove]()
        for _ in range(2):
            member = await a_member(db, server)
            move = RivalMove(
                server_id=member.server_id, discord_id=member.discord_id, role_id=role_id, taken=True, at=now(),
                next_at=now() - timedelta(days=3), naming="open", against=step == "let be", actor_id=rival,
            )  # fmt: skip
            db.add(move)
            await db.flush()
            moves.append(move)
            key = {"server_id": member.server_id, "discord_id": member.discord_id, "role_id": role_id}
            db.add(Truce(**key, until=now() + timedelta(days=1)))
        first, last = moves
        while (await db.execute("SELECT id FROM rival_move ORDER BY ctid LIMIT 1")).scalar_one() == first.id:
            await db.execute("UPDATE rival_move SET attempts = 0 WHERE id = :id", {"id": first.id})
    opened = tuple(rival_names.OpenMove(one.id or 0, one.discord_id, role_id, True, one.at, None) for one in moves)
    search = rival_names.Search(server.id or 0, server.discord_id, True, opened)

    async def write(db: AsyncSession) -> None:
        match step:
            case "refused":
                await rival_names.keep(db, search, rival_names.RoleLog(denied=True))
            case "silent":
                await rival_names.keep(db, search, rival_names.RoleLog(fault=ProviderError("Discord", "silent")))
            case "not there":
                await rival_names.keep(db, search, rival_names.RoleLog())
            case "later":
                await rival_names.postpone(db, search)
            case "too old":
                await rival_names.give_up(db)
            case "counted":
                found = [Reversal(one.server_id, one.discord_id, role_id, taken=True) for one in moves]
                await rivals.record(db, found, against=True)
            case "let be":
                await rivals.end(db, server.id or 0, role_id)
            case "forgotten since":
                db.add(Farewell(discord_id=rival, pseudonym="forgotten-1"))
                await db.flush()
                await erasure.finish(db)
            case _:
                user_id = await users.ensure(db, rival, "rival")
                await erasure.forget(db, Actor(user_id, rival, "rival"))

    def move_of(move: RivalMove) -> Step:
        return lambda db: db.exec(select(RivalMove.id).where(RivalMove.id == move.id).with_for_update())

    await meet(write, move_of(first), move_of(last))


@pytest.mark.parametrize(("step", "locked"), [("is over", Grant), ("is over", Truce), ("left", Truce)])
async def test_the_end_of_truces_waits_for_what_locks_many_and_never_deadlocks(
    step: str, locked: type[Grant | Truce]
) -> None:
    """The deletion of a role locks the grants of all members, and the event that a member left their truces."""
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        people = [await a_member(db, server) for _ in range(2)]
        first, last = sorted(people, key=lambda member: member.discord_id)
        for member in (last, first):
            await a_grant(db, member, rule, state="lost")
            key = {"server_id": member.server_id, "discord_id": member.discord_id, "role_id": rule.role_id}
            db.add(Truce(**key, until=now()))
            await db.flush()
        await db.execute(MANY_OTHERS, {"server": server.id})
        for table in ('"grant"', "truce"):
            front = f"SELECT discord_id FROM {table} ORDER BY ctid LIMIT 1"
            while (await db.execute(front)).scalar_one() == first.discord_id:
                named = {"who": first.discord_id}
                await db.execute(f"UPDATE {table} SET role_id = role_id WHERE discord_id = :who", named)

    async def end(db: AsyncSession) -> None:
        if step == "left":
            await members.left_many(db, [(server.id or 0, member.discord_id) for member in people])
        else:
            assert await rivals.end_expired(db) == 2

    def row_of(member: Member) -> Step:
        return lambda db: db.exec(select(locked).where(locked.discord_id == member.discord_id).with_for_update())

    async with transaction() as db:
        await db.execute('ANALYZE "grant"')
    await meet(end, row_of(first), row_of(last))
    async with transaction() as db:
        assert (await db.exec(select(locked).where(locked.role_id == rule.role_id))).all() == []


# So many that the planner reads the table and looks up each of its rows among the few that are named.
MANY_OTHERS = """
    INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, attempts, created_at,
                         updated_at)
    SELECT :server, n, '1', '{}', 'lost', false, '{}', 0, now(), now() FROM generate_series(1, 1000) n
"""
