"""An error of our own stops only the one thing that it concerns, and Health reports it."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlmodel import col, select, update

from jobs.reconciler import Reconciler
from models import Breaker, Due, Event, Grant, Rule, Server, now, transaction
from services.core import queue as due
from services.engine import read_and_confirm
from services.engine.cases import Case
from services.engine.reconcile_outcome import BatchOutcome
from services.health import backlog
from services.runtime import retries
from services.runtime.logs import redact_every_log
from services.runtime.task_cancellation import stop
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given

decide_cases = read_and_confirm.decide_cases


async def test_a_member_with_whom_the_look_fails_keeps_nobody_else_waiting(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = town.people["carol"]["id"]

    async def failing(outside: Any, cases: Sequence[Case], wanted: Any, moment: datetime, **more: Any) -> BatchOutcome:
        if any(case.claim.discord_id == poison for case in cases):
            raise ValueError("nobody foresaw this")
        return await decide_cases(outside, cases, wanted, moment, **more)

    monkeypatch.setattr(read_and_confirm, "decide_cases", failing)
    await town.rule("Holder")
    await town.buys("dave")
    for who in ("ada", "carol", "dave"):
        await town.prove(who)
    await Reconciler(asyncio.Event()).once()
    async with transaction() as db:
        rows = (await db.exec(select(Due).where(col(Due.key).startswith(f"{town.server_id}:")))).all()
        held = (await db.exec(select(Grant.discord_id).where(Grant.server_id == town.server_id))).all()
        told = await backlog.unknown(db, town.server_id)
    assert held == [town.people["dave"]["id"]]
    # A member without a token is reconciled once more, at a time when no node can be behind.
    (row,) = [row for row in rows if row.attempts]
    assert (row.key, row.attempts, row.claimed_by) == (f"{town.server_id}:{poison}", 1, None)
    assert row.due_at > now()
    (reason,) = told
    assert "a fault of our own (ValueError)" in reason.text


async def test_the_log_of_a_batch_that_fails_names_no_wallet(
    town: Town, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wallets = ("9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM", "0x" + 20 * "aB", "0X" + 20 * "cd")

    async def failing(*_: Any, **_more: Any) -> None:
        try:
            raise ValueError(f"{wallets[0]!r} is not an EVM address")
        except ValueError as fault:
            raise KeyError(wallets) from fault

    monkeypatch.setattr(read_and_confirm, "decide_cases", failing)
    await town.rule("Holder")
    for who in ("carol", "dave"):
        await town.prove(who)
    before = logging.getLogRecordFactory()
    redact_every_log()
    try:
        await Reconciler(asyncio.Event()).once()
    finally:
        logging.setLogRecordFactory(before)
    text = "\n".join(logging.Formatter().format(one) for one in caplog.records)
    assert "batch failed, splitting it members=2 reason=KeyError" in text
    assert "failed to reconcile" in text
    assert "is not an EVM address" in text, "the cause is told"
    assert not [one for one in wallets if one.lower() in text.lower()]


async def test_a_change_that_cannot_be_carried_out_keeps_no_other_waiting_and_is_told(
    town: Town, engine: Engine
) -> None:
    await town.rule("Holder")
    await town.buys("dave")
    nonsense = Grant(
        server_id=town.server_id, discord_id=town.people["carol"]["id"], role_id="no role's id", state="giving",
        intended_at=now(), next_at=now(),
    )  # fmt: skip
    async with transaction() as db:
        db.add(nonsense)
    async with engine():
        await town.prove("dave")
        await given(town, "dave")

        async def tried() -> bool:
            async with transaction() as db:
                row = await db.get_one(Grant, nonsense.id)
                return row.attempts > 0 and row.next_at is not None and row.next_at > now()

        await until(tried)
    async with transaction() as db:
        (reason,) = await backlog.unknown(db, town.server_id)
    assert "Not written for 1 member" in reason.text


async def test_what_failed_for_long_is_reported_with_its_remedy(town: Town) -> None:
    async with transaction() as db:
        await due.mark_member(db, town.server_id, town.people["carol"]["id"], due.SEEN)
        row = await db.get_one(Due, ("member", f"{town.server_id}:{town.people['carol']['id']}"))
        row.attempts, row.reason = 12, "Base: no answer"
        db.add(row)
        await db.flush()
        queue = await backlog.queue(db, town.server_id, now())
    assert queue.state == "bad"
    assert "1 of these failed 12 times or more" in queue.text
    assert queue.mend is not None
    assert "tell the person who runs the bot" in queue.mend


@pytest.mark.parametrize(
    ("minutes", "state", "written", "late"),
    [(11, "active", None, True), (9, "active", None, False), (11, "paused", None, False), (11, "active", 5, False)],
)
async def test_changes_that_nobody_writes_are_told(
    town: Town, minutes: int, state: str, written: int | None, late: bool
) -> None:
    rule_id = await town.rule("Holder")
    async with transaction() as db:
        rule = await db.get_one(Rule, rule_id)
        rule.state, carol = state, town.people["carol"]["id"]
        asked = now() - timedelta(minutes=minutes)
        db.add(rule)
        db.add(
            Grant(
                server_id=town.server_id, discord_id=carol, role_id=rule.role_id, state="giving", rule_ids=[rule_id],
                intended_at=asked, next_at=asked,
            )
        )  # fmt: skip
        if written is not None:
            at = now() - timedelta(minutes=written)
            db.add(Event(server_id=town.server_id, kind="role.given", subject=carol, role_id=rule.role_id, at=at))
        await db.flush()
        queue = await backlog.queue(db, town.server_id, now())
    assert queue.state == ("bad" if late else "good")
    assert ("do not keep up" in (queue.mend or "")) == late


@pytest.mark.parametrize("why", ["the bot is away", "Discord fails"])
async def test_changes_that_the_writer_cannot_write_are_no_fault_of_the_jobs(town: Town, why: str) -> None:
    rule_id = await town.rule("Holder")
    asked = now() - timedelta(minutes=30)
    async with transaction() as db:
        rule = await db.get_one(Rule, rule_id)
        for who, tries in (("carol", 0), ("dave", 4)):
            db.add(
                Grant(
                    server_id=town.server_id, discord_id=town.people[who]["id"], role_id=rule.role_id, state="giving",
                    rule_ids=[rule_id], intended_at=asked, next_at=now() if tries else asked, attempts=tries,
                    last_error="Discord: HTTP 500" if tries and why == "Discord fails" else None,
                )
            )  # fmt: skip
        if why == "the bot is away":
            (await db.get_one(Server, town.server_id)).bot_invited = False
            await db.exec(update(Grant).values(attempts=0, next_at=asked))
        await db.flush()
        queue = await backlog.queue(db, town.server_id, now())
    assert queue.state != "bad"
    assert "do not keep up" not in str(queue.mend)


@pytest.mark.parametrize("stopped", [False, True])
async def test_removals_that_nobody_writes_are_told_unless_the_breaker_stopped_them(town: Town, stopped: bool) -> None:
    rule_id = await town.rule("Holder")
    asked = now() - timedelta(minutes=11)
    async with transaction() as db:
        role_id = (await db.get_one(Rule, rule_id)).role_id
        db.add(
            Grant(
                server_id=town.server_id, discord_id=town.people["carol"]["id"], role_id=role_id, state="taking",
                intended_at=asked, next_at=asked,
            )
        )  # fmt: skip
        if stopped:
            db.add(Breaker(server_id=town.server_id, role_id=role_id, would_lose=7, holders=9))
        await db.flush()
        queue = await backlog.queue(db, town.server_id, now())
    assert queue.state == ("good" if stopped else "bad")


async def test_a_part_that_fails_begins_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retries, "RESTART_SECONDS", 0.0)
    lives = 0
    lived = asyncio.Event()

    async def life() -> None:
        nonlocal lives
        lives += 1
        if lives < 3:
            raise ValueError("nobody foresaw this")
        lived.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(retries.run_forever(life))
    await lived.wait()
    await stop(task)
    assert caplog.text.count("ValueError: nobody foresaw this") == 2
