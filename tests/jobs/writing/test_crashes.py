"""Role changes interrupted by a crash, a limit or a silence: each is sent once, and none is lost."""

import pytest
from sqlalchemy import text
from sqlmodel import select

from gateways import gateways
from gateways.transport.errors import NotYet, ProviderDown
from models import Grant, now, transaction
from services.roles import outbox, write_results
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, grants, kinds, looked_at, no_grants
from tests.support.builders import open_intents


async def test_what_was_sent_before_a_crash_is_not_sent_again(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    start = await town.mark()
    await looked_at(town)
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, ())
    # The request is sent, and the process ends before it records the outcome.
    await outbox.carry_out(gateways(), intent, sure=True)
    async with engine():
        await given(town)
    assert await town.writes(start) == ["PUT"]


async def test_a_role_that_has_to_wait_for_the_limit_is_not_read_back(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    gives, held_back = gateways().discord.add_role, list[str]()

    async def used_up_at_first(guild: str, user: str, role: str, reason: str) -> None:
        if len(held_back) < 2:
            held_back.append(guild)
            raise NotYet("Discord", "its rate limit is used up", retry_after=0.2)
        await gives(guild, user, role, reason)

    monkeypatch.setattr(gateways().discord, "add_role", used_up_at_first)
    async with engine():
        # Changes intended before the writer takes its lease are read first in any case.
        await until(_writer_has_its_lease)
        start = await town.mark()
        await town.prove("carol")
        await given(town)
    assert len(held_back) == 2
    assert [row.attempts for row in await grants(town)] == [0]
    member = f"/members/{town.people['carol']['id']}"
    asked = [one for one in await town.requests(start, "discord") if one["path"].endswith(member)]
    assert asked == [], "it was never sent, so nobody has to look whether it happened"


async def _writer_has_its_lease() -> bool:
    async with transaction() as db:
        mine = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        question = f"SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND {mine})"
        return bool((await db.execute(text(question))).scalar_one())


async def test_a_removal_that_was_sent_before_a_crash_is_not_sent_again(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    start = await town.mark()
    await town.sells(token)
    await looked_at(town)
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, ())
    await outbox.carry_out(gateways(), intent, sure=True)
    async with engine():
        await until(lambda: no_grants(town))
    assert await town.writes(start) == ["DELETE"]


async def test_a_removal_that_nobody_answered_is_waited_for_before_the_role_is_given_back(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        await given(town)

    async def unheard(*_: object) -> None:
        raise ProviderDown("Discord", "no answer (ReadTimeout)")

    monkeypatch.setattr(gateways().discord, "remove_role", unheard)
    await town.sells(token)
    await looked_at(town)
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, set())
    outcome = await outbox.carry_out(gateways(), intent, sure=True)
    async with transaction() as db:
        await write_results.record(db, intent, outcome)
    await town.buys("carol")
    await looked_at(town)
    async with engine():
        assert [row.state for row in await grants(town)] == ["giving"], "it is right again, but not sent yet"
        async with transaction() as db:
            assert await open_intents(db, 10, set()) == []
        carol = {"guild": town.name, "user": town.people["carol"]["id"], "role": await town.role("Holder")}
        await town.call("members", action="remove_role", **carol)  # Discord now carries out the earlier request
        async with transaction() as db:
            await db.execute(text("UPDATE unanswered SET at = at - interval '2 minutes'"))
        await given(town)
    assert "role.lost" not in await kinds(town)


async def test_a_removal_that_could_not_be_sent_for_long_is_decided_again(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    await looked_at(town)
    async with transaction() as db:
        row = (await db.exec(select(Grant).where(Grant.server_id == town.server_id))).one()
        assert row.state == "taking"
        row.intended_at = now() - 2 * outbox.STALE_AFTER
        db.add(row)
    await town.buys("carol")
    start = await town.mark()
    async with engine():
        await given(town)
    assert await town.writes(start) == []


async def test_a_write_that_fails_is_tried_again_and_not_taken_for_done(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    await town.break_("500", "discord")
    async with engine():

        async def tried() -> bool:
            return any(row.attempts > 0 for row in await grants(town))

        await until(tried, 40)
        assert [row.state for row in await grants(town)] == ["giving"]
        assert not await town.has("carol", "Holder")
        await town.heal()
        await given(town)
