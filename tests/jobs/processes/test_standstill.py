"""A role writer is stopped, as by SIGSTOP, while another process has the lease, and then goes on."""

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from jobs.role_writer import RoleWriter
from models.db.session import AsyncSession
from services.roles import outbox, write_results
from services.roles.outbox import Intent
from tests.jobs.conftest import Engine
from tests.jobs.processes.test_meanwhile import about_to_lose_it, the_intent
from tests.jobs.town import Town, until
from tests.jobs.watching import given, grants, looked_at, taken

MINUTES = 120.0
"""Seconds for which it is stopped."""


async def carried_out(intent: Intent) -> None:
    await RoleWriter(asyncio.Event())._carry_out(intent, intent.intended_at)


async def test_a_removal_before_which_the_process_stood_still_is_not_sent(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent, is_still_wanted = await about_to_lose_it(town, engine), write_results.is_still_wanted
    start = await town.mark()

    async def and_then_it_stands_still(db: AsyncSession, asked: Intent) -> bool:
        wanted = await is_still_wanted(db, asked)
        await town.buys("carol")
        monkeypatch.setattr(outbox, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + MINUTES))
        return wanted

    with monkeypatch.context() as patched:
        patched.setattr(write_results, "is_still_wanted", and_then_it_stands_still)
        await carried_out(intent)
    assert await town.writes(start) == []
    await looked_at(town)
    assert [row.state for row in await grants(town)] == ["held"]


async def test_a_gift_before_which_the_process_stood_still_does_not_come_after_the_sale(
    town: Town, engine: Engine
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    first = await the_intent()
    async with engine():
        await given(town)
        await town.sells(token)
        await town.look()
        await taken(town)

        async def settled() -> bool:
            return await grants(town) == []

        await until(settled)
    await carried_out(replace(first, read_at=first.read_at - MINUTES))
    assert not await town.has("carol", "Holder"), "no line of the ledger would say that the role is ours"
