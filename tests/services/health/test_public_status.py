"""The public status of the product: honest, bounded in cost, and without anything about servers or people."""

import asyncio
import json
import time
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import psycopg
import pytest

import models
from gateways.chains.catalogue import CHAINS
from gateways.transport import provider_reports
from gateways.transport.provider_reports import ProviderReport
from locales import speaking
from models import Cursor, Grant, ProviderState, Schedule, now, transaction
from services.health import provider_records, public_status
from services.health.public_status import StatusView
from services.triggers import sweep
from settings import settings, version
from tests.support.builders import a_grant, a_member, a_rule, a_server, address
from tests.support.databases import plain


@pytest.fixture(autouse=True)
async def two_chains(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product with two nodes on Base and one on Polygon, whose status has not been read yet."""
    nodes = {"rpc_base": "http://one.example http://two.example", "rpc_polygon": "http://three.example"}
    chosen = settings().model_copy(update={"by_chain": nodes})
    monkeypatch.setattr(public_status, "settings", lambda: chosen)
    # A statement still has its own limit of one second.
    monkeypatch.setattr(public_status, "READING_SECONDS", 30.0)
    public_status._readings.clear()


async def note(**states: str) -> None:
    """Store how providers last answered; a node is named like `base_0`."""
    reports = [ProviderReport(name.replace("_", ":"), state, now()) for name, state in states.items()]
    async with transaction() as db:
        await provider_records.keep(db, reports)


async def all_well() -> None:
    """Store that every part has answered, and that a sweep ended two hours ago."""
    await note(bot="ok", discord="ok", opensea="ok", base_0="ok", base_1="ok", polygon_0="ok")
    async with transaction() as db:
        ended = now() - timedelta(hours=2)
        db.add(Schedule(name=sweep.SCHEDULE, next_at=now() + timedelta(hours=22), started_at=ended, finished_at=ended))


async def read() -> StatusView:
    """Return the status as the tables have it now, without the cache."""
    public_status._readings.clear()
    return await public_status.view()


async def test_before_anything_is_known_it_says_so() -> None:
    view = await read()
    assert (view.version, view.state, view.headline) == (version(), "unknown", "Not known yet")
    assert {one.state for one in (*view.providers, *view.chains)} == {"unknown"}
    assert all("Not known yet" in one.text for one in (*view.providers, *view.chains))
    assert view.last_sweep is not None
    assert (view.last_sweep.state, view.last_sweep.age_seconds) == ("unknown", None)


async def test_while_all_is_well_the_headline_says_that_everything_works() -> None:
    await all_well()
    view = await read()
    assert (view.state, view.headline) == ("good", "Everything works")
    assert [(one.chain, one.nodes, one.nodes_answering) for one in view.chains] == [("polygon", 1, 1), ("base", 2, 2)]
    assert view.last_sweep is not None
    assert view.last_sweep.age_seconds == pytest.approx(2 * 3600, abs=60)
    assert view.last_sweep.text == "The last daily sweep ended 2 hours ago."


async def test_what_does_not_work_is_named_in_the_headline() -> None:
    await all_well()
    await note(discord="down", base_0="down", base_1="stale")
    view = await read()
    assert (view.state, view.headline) == ("bad", "Discord and Base do not work as they should")
    discord = next(one for one in view.providers if one.name == "Discord")
    assert discord.text.startswith("Discord does not answer.")
    assert discord.since is not None


async def test_one_silent_node_of_two_is_a_warning() -> None:
    await all_well()
    await note(base_1="down")
    view = await read()
    assert (view.state, view.headline) == ("warning", "It works, but some nodes of Base do not answer")
    assert next(one for one in view.chains if one.chain == "base").text == "1 of 2 nodes answer."


async def test_a_bot_that_fell_silent_and_a_late_sweep_are_named() -> None:
    await all_well()
    async with transaction() as db:
        bot = await db.get_one(ProviderState, provider_records.BOT)
        bot.checked_at = now() - timedelta(minutes=5)
        row = await db.get_one(Schedule, sweep.SCHEDULE)
        row.next_at = now() - timedelta(hours=1)
    view = await read()
    assert view.headline == "The bot and the daily sweep do not work as they should"
    assert view.last_sweep is not None
    assert view.last_sweep.text == "The daily sweep is 1 hour late."


async def test_the_lag_of_a_followed_chain_is_told_in_blocks_and_seconds() -> None:
    await all_well()
    async with transaction() as db:
        await a_rule(db, await a_server(db), "1")
        db.add(Cursor(chain="base", block=90, head=93, updated_at=now() - timedelta(seconds=30)))
        db.add(Cursor(chain="polygon", block=90, head=95, updated_at=now() - timedelta(days=1)))
    base, polygon = sorted((await read()).chains, key=lambda one: one.chain)
    assert (base.behind_blocks, base.state) == (3, "good")
    assert base.seconds_ago == pytest.approx(30, abs=10)
    assert base.text.endswith(" nodes answer. Transfers are read up to 3 blocks before its newest.")
    with speaking("ja"):
        translated = next(one.text for one in (await public_status.view()).chains if one.chain == "base")
    assert translated.count("。") == 2, "two sentences"
    assert " " not in translated.partition("。")[2][:1], "Japanese has no space between them"
    assert (polygon.behind_blocks, polygon.seconds_ago, polygon.state) == (None, None, "good"), "no rule is about it"
    await note(base_0="down", base_1="down")
    (cut_off,) = [one for one in (await read()).chains if one.chain == "base"]
    assert (cut_off.behind_blocks, cut_off.state) == (None, "bad")
    assert cut_off.text == "None of its nodes answers as it should. Transfers are read up to block 90."
    async with transaction() as db:
        cursor = await db.get_one(Cursor, "base")
        cursor.updated_at = now() - timedelta(hours=1)
    (late,) = [one for one in (await read()).chains if one.chain == "base"]
    assert (late.state, "No transfer has been read for 1 hour." in late.text) == ("bad", True)


async def test_it_tells_nothing_about_servers_or_people() -> None:
    await all_well()
    secret = "a reason with a key"
    async with transaction() as db:
        server = await a_server(db)
        server.name = "Secret society"
        rule = await a_rule(db, server, "777000777")
        member = await a_member(db, server, wallet=address())
        grant: Grant = await a_grant(db, member, rule)
        db.add(Cursor(chain="base", block=90, head=93, fault=secret))
        await provider_records.keep(db, [ProviderReport("base:0", provider_reports.DOWN, now(), secret)])
        told = (server.name, server.discord_id, rule.role_id, rule.contract_address, member.discord_id, grant.role_id)
    found = json.dumps(asdict(await read()), default=str)
    assert [one for one in (*told, secret, "one.example") if one in found] == []
    assert not {"servers", "members", "rules", "wallets"} & set(json.loads(found))


async def test_a_thousand_readers_at_once_cost_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    await all_well()
    readings, original = 0, public_status.read

    async def counted(db: models.AsyncSession) -> Any:
        nonlocal readings
        readings += 1
        return await original(db)

    monkeypatch.setattr(public_status, "read", counted)
    views = await asyncio.gather(*(public_status.view() for _ in range(1_000)))
    assert {one.headline for one in views} == {"Everything works"}
    assert (await public_status.view(), readings) == (views[0], 1)


async def test_a_reader_who_leaves_takes_the_answer_from_nobody() -> None:
    await all_well()
    leaves, stays = asyncio.create_task(public_status.view()), asyncio.create_task(public_status.view())
    await asyncio.sleep(0)
    leaves.cancel()
    assert (await stays).headline == "Everything works"


async def test_a_database_that_keeps_us_waiting_is_said_and_not_waited_for(database: str) -> None:
    await all_well()
    async with await psycopg.AsyncConnection.connect(plain(database)) as other:
        await other.execute("LOCK TABLE provider_state")
        view = await read()
    assert (view.database, view.state, view.chains, view.last_sweep) == (False, "bad", (), None)
    assert view.headline == "The database does not answer, so nothing else is known"
    assert (await read()).headline == "Everything works"


async def test_what_the_words_take_is_not_the_databases_time(monkeypatch: pytest.MonkeyPatch) -> None:
    await all_well()
    await read()

    def slow(*_: Any) -> Any:
        time.sleep(1.0)
        return summary(*_)

    summary = public_status._summary
    monkeypatch.setattr(public_status, "READING_SECONDS", 3.0)
    monkeypatch.setattr(public_status, "_summary", slow)
    assert (await read()).headline == "Everything works"


async def test_every_chain_with_a_node_is_listed_and_no_other() -> None:
    assert {one.chain for one in (await read()).chains} == {"base", "polygon"} < set(CHAINS)


async def test_one_reading_serves_readers_of_every_language() -> None:
    await all_well()
    english = await read()
    with speaking("ja"):
        japanese = await public_status.view()
    assert (japanese.headline, japanese.checked_at) == ("すべて正常です", english.checked_at)
    assert [one.state for one in japanese.chains] == [one.state for one in english.chains]
    assert not {one.text for one in japanese.providers} & {one.text for one in english.providers}
