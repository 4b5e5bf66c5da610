"""Members are marked by what a log names: at once, in the servers that ask about the contract, and not too often."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from models import Delegation, Due, Member, now, transaction
from services.core import queue
from services.triggers import sightings
from services.triggers.chain_cursor import ANY
from services.triggers.sightings import FIRST_PAUSE, LONGEST_PAUSE, Marks, Moved
from tests.support.builders import CONTRACT, a_member, a_server, address

MOMENTS = st.lists(st.floats(0.01, 300), min_size=1, max_size=60)


@given(MOMENTS)
def test_no_log_is_without_a_mark_after_it_and_marks_keep_their_distance(steps: list[float]) -> None:
    marks, clock, made = Marks(), 0.0, list[float]()
    for step in steps:
        clock += step
        pause = marks.pause(CONTRACT, "0xa", clock)
        assert 0 <= pause <= LONGEST_PAUSE
        moment = clock + pause
        if not made or moment > made[-1] + 1e-6:
            made.append(moment)
        assert made[-1] == pytest.approx(moment), "a log that repeats is part of a mark that is still to come"
    assert all(after - before > FIRST_PAUSE - 1e-6 for before, after in pairwise(made))


def test_the_first_log_is_immediate_and_so_is_one_after_a_quiet_time() -> None:
    marks = Marks()
    assert marks.pause(CONTRACT, "0xa", 100.0) == 0
    assert marks.pause(CONTRACT, "0xb", 100.1) == 0
    assert marks.pause(ANY, "0xa", 100.1) == 0
    assert marks.pause(CONTRACT, "0xa", 101.0) == pytest.approx(FIRST_PAUSE - 1)
    assert marks.pause(CONTRACT, "0xa", 101.0 + 2 * LONGEST_PAUSE) == 0


def test_a_log_each_second_makes_a_mark_every_two_minutes() -> None:
    marks = Marks()
    moments = {round(second + marks.pause(CONTRACT, "0xa", second), 3) for second in map(float, range(3_600))}
    assert len(moments) < 40


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sightings, "MOST_REMEMBERED", 10)
    marks = Marks()
    for number in range(30):
        marks.pause(CONTRACT, f"0x{number}", 1.0)
    assert len(marks._last) == 10
    assert marks.pause(CONTRACT, "0x29", 1.5) > 0


async def concern(moved: list[Moved], servers: Mapping[str, Collection[int]], marks: Marks, clock: float) -> None:
    async with transaction() as db:
        sightings.record_moves(db, "base", moved, servers, marks, clock)


async def dues() -> dict[str, Due]:
    async with transaction() as db:
        rows = [Due(**dict(row._mapping)) for row in await db.execute(text("SELECT * FROM due"))]
        return {row.key: row for row in rows}


def key(member: Member) -> str:
    return f"{member.server_id}:{member.discord_id}"


@pytest.mark.usefixtures("database")
async def test_only_servers_whose_rules_name_the_contract_or_any_look_at_their_members() -> None:
    wallet = address()
    async with transaction() as db:
        naming, anything, other = [await a_server(db) for _ in range(3)]
        member = await a_member(db, naming, wallet=wallet)
        await a_member(db, naming, wallet=address())
        for server in (anything, other):
            db.add(Member(server_id=server.id or 0, discord_id=member.discord_id, name="somebody"))
    servers = {CONTRACT: [naming.id or 0], ANY: [anything.id or 0]}
    await concern([Moved(CONTRACT, wallet, 7)], servers, Marks(), 0.0)
    assert (await dues()).keys() == {key(member), f"{anything.id}:{member.discord_id}"}
    async with transaction() as db:
        assert (await db.execute(text("SELECT address, block FROM sighting"))).all() == [(wallet, 7)]


@pytest.mark.usefixtures("database")
async def test_a_member_who_counts_a_vault_is_reconciled_when_it_moves_something() -> None:
    wallet, vault = address(), address()
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server, wallet=wallet)
        db.add(Delegation(chain="base", delegate=wallet, vault=vault, contract="", token_id=""))
    await concern([Moved(CONTRACT, vault, 7)], {CONTRACT: [server.id or 0]}, Marks(), 0.0)
    assert (await dues()).keys() == {key(member)}


@pytest.mark.usefixtures("database")
async def test_a_mark_that_repeats_waits_and_is_not_lost() -> None:
    wallet = address()
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server, wallet=wallet)
    marks, servers = Marks(), {CONTRACT: [server.id or 0]}
    await concern([Moved(CONTRACT, wallet, 7)], servers, marks, 100.0)
    assert (await dues())[key(member)].due_at <= now()
    await concern([Moved(CONTRACT, wallet, 8)], servers, marks, 101.0)
    row = (await dues())[key(member)]
    assert row.version == 2
    assert row.due_at <= now(), "a look that has not begun comes no later for it"

    async with transaction() as db:
        (claim,) = await queue.claim(db, "worker", 10)
    await concern([Moved(CONTRACT, wallet, 9)], servers, marks, 102.0)
    async with transaction() as db:
        queue.complete(db, "worker", [claim])
    row = (await dues())[key(member)]
    assert now() < row.due_at <= now() + timedelta(seconds=FIRST_PAUSE)

    async with transaction() as db:
        await db.execute(text("DELETE FROM due"))
    await concern([Moved(CONTRACT, wallet, 10)], servers, marks, 103.0)
    assert now() < (await dues())[key(member)].due_at
    other = "0x" + "77" * 20
    await concern([Moved(other, wallet, 10)], {other: [server.id or 0]}, marks, 103.0)
    assert (await dues())[key(member)].due_at <= now(), "another contract's log is news"
