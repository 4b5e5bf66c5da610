"""What monitors see, who may see it, and that a bad state answers 503."""

import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from sqlalchemy import text

import models
from app.api import api
from gateways.transport import provider_reports
from gateways.transport.errors import ProviderBusy, ProviderDown
from gateways.transport.provider_reports import ProviderReport
from models import Cursor, Schedule, now, transaction
from services.core import queue
from services.health import provider_records, public_status
from services.health.provider_records import Recorder
from services.privacy import retention
from services.runtime import counters, rate_limits
from services.triggers import sweep
from settings import settings, version
from tests.app.api.browsers import PUBLIC_URL, Browser
from tests.support.builders import a_grant, a_member, a_rule, a_server

pytestmark = pytest.mark.usefixtures("product")
PATHS = ("/health/deep", "/metrics")


async def all_is_well() -> None:
    """Store that the bot has just reported that it is alive, and that a sweep has just ended."""
    async with transaction() as db:
        await provider_records.keep(db, [provider_records.bot_is(True)])
        moment = now()
        db.add(
            Schedule(
                name=sweep.SCHEDULE, next_at=moment + timedelta(days=1), started_at=moment, finished_at=moment, total=3
            )
        )


async def numbers(browser: Browser) -> dict[tuple[str, ...], float]:
    """Return every sample by its name and its labels' values, in the order of the labels' names."""
    answer = await browser.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def test_while_all_is_well_every_part_says_so(browser: Browser):
    await all_is_well()
    answer = await browser.client.get("/health/deep")
    body = answer.json()
    assert (answer.status_code, body["state"]) == (200, "good")
    assert {body[part]["state"] for part in ("database", "queue", "bot", "lastSweep", "housekeeping")} == {"good"}
    assert body["bot"]["connected"] is True
    assert answer.headers["cache-control"] == "no-store"


async def test_a_redis_that_does_not_answer_is_bad(browser: Browser, redis_url: str, monkeypatch: pytest.MonkeyPatch):
    """Without it no screen gets beyond Loading, while every call of the API works."""
    await all_is_well()
    assert "redis" not in (await browser.client.get("/health/deep")).json()
    for url, status, state in ((redis_url, 200, "good"), ("redis://127.0.0.1:1/0", 503, "bad")):
        await rate_limits.forget()
        monkeypatch.setattr(rate_limits, "settings", lambda url=url: SimpleNamespace(redis_url=url))
        answer = await browser.client.get("/health/deep")
        body = answer.json()
        assert (answer.status_code, body["state"], body["redis"]["state"]) == (status, state, state)
    await rate_limits.forget()


async def test_a_bot_that_is_not_heard_is_bad(browser: Browser):
    await all_is_well()
    async with transaction() as db:
        await db.execute(text("UPDATE provider_state SET checked_at = now() - interval '2 minutes'"))
    answer = await browser.client.get("/health/deep")
    assert (answer.status_code, answer.json()["bot"]["state"]) == (503, "bad")
    assert answer.json()["queue"]["state"] == "good"


async def test_a_queue_that_nobody_works_on_and_a_late_sweep_are_bad(browser: Browser):
    await all_is_well()
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server)
        await queue.mark_member(db, server.id or 0, member.discord_id, queue.CHANGED)
        await db.execute(text("UPDATE due SET due_at = now() - interval '11 minutes'"))
        await db.execute(text("UPDATE schedule SET next_at = now() - interval '11 minutes'"))
    answer = await browser.client.get("/health/deep")
    body = answer.json()
    assert answer.status_code == 503
    assert (body["queue"]["state"], body["queue"]["due"]) == ("bad", 1)
    assert body["queue"]["oldestSeconds"] >= 660
    assert body["lastSweep"]["state"] == "bad"


async def test_a_queue_with_a_warning_says_what_it_warns_about(browser: Browser):
    """Somebody whose wallets could not be read waits for the next try, which is not due yet."""
    await all_is_well()
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server)
        await queue.mark_member(db, server.id or 0, member.discord_id, queue.CHANGED)
        await db.execute(text("UPDATE due SET attempts = 3, due_at = now() + interval '1 hour'"))
    shown = (await browser.client.get("/health/deep")).json()["queue"]
    assert (shown["state"], shown["due"], shown["retrying"]) == ("warning", 0, 1)
    assert shown["text"] == "1 member waits for a second try, because something could not be read."
    async with transaction() as db:
        rule = await a_rule(db, server, "1")
        await a_grant(db, member, rule, state="giving")
        await db.execute(text("UPDATE \"grant\" SET last_error = 'refused', intended_at = now() + interval '1 hour'"))
    assert (
        (await browser.client.get("/health/deep"))
        .json()["queue"]["text"]
        .endswith("1 role change waits to be written, the first for 0 seconds. Of these, 1 could not be written yet.")
    )


async def test_a_schedule_that_stands_still_is_bad_though_nobody_waits(browser: Browser):
    """A deletion that fails each time, or a scheduler that hangs: the next sweep may be a day away."""
    await all_is_well()
    async with transaction() as db:
        db.add(Schedule(name=retention.SCHEDULE, next_at=now() - timedelta(minutes=61)))
    answer = await browser.client.get("/health/deep")
    body = answer.json()
    assert (answer.status_code, body["housekeeping"]["state"], body["queue"]["state"]) == (503, "bad", "good")
    assert body["housekeeping"]["text"] == "The deletion of expired data is 1 hour late."


async def test_a_chain_that_no_node_lets_us_read_is_a_warning_until_it_is_late(browser: Browser):
    await all_is_well()
    async with transaction() as db:
        await a_rule(db, await a_server(db), "1")
        db.add(Cursor(chain="base", block=90, head=93, updated_at=now()))
        await provider_records.keep(db, [ProviderReport(f"base:{place}", "down", now()) for place in (0, 1)])
    answer = await browser.client.get("/health/deep")
    (shown,) = answer.json()["followers"]
    assert (answer.status_code, shown["state"]) == (200, "warning")
    assert "Base was last read up to block 90." in shown["text"]
    async with transaction() as db:
        await db.execute(text("UPDATE cursor SET updated_at = now() - interval '1 hour'"))
    assert (await browser.client.get("/health/deep")).status_code == 503


async def test_a_follower_that_stays_behind_is_bad_only_where_a_rule_asks(browser: Browser):
    await all_is_well()
    async with transaction() as db:
        await a_rule(db, await a_server(db), "1")
        long_ago = now() - timedelta(hours=1)
        for chain in ("base", "polygon"):
            db.add(Cursor(chain=chain, block=90, head=100, updated_at=long_ago))
    answer = await browser.client.get("/health/deep")
    assert answer.status_code == 503
    assert [(one["chain"], one["behind"], one["state"]) for one in answer.json()["followers"]] == [("base", 10, "bad")]


async def test_a_chain_that_is_polled_rarely_is_late_for_monitors_as_for_the_page(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
):
    await all_is_well()
    monkeypatch.setitem(settings().by_chain, "follow_seconds_base", "3600")
    async with transaction() as db:
        await a_rule(db, await a_server(db), "1")
        db.add(Cursor(chain="base", block=90, head=100, updated_at=now() - timedelta(hours=2)))
    assert (await browser.client.get("/health/deep")).json()["followers"][0]["state"] == "good"
    found = await numbers(browser)
    silent = found["holdfast_follower_silent_seconds", "base"]
    assert 1800 < silent < found["holdfast_follower_late_seconds", "base"] == 3 * 3600


async def test_without_a_database_that_is_what_is_bad(browser: Browser):
    await models.use("postgresql+psycopg://nobody@/nothing?host=/nowhere")
    answer = await browser.client.get("/health/deep")
    assert answer.status_code == 503
    assert answer.json() == {
        "state": "bad",
        "database": {"state": "bad", "text": "The database does not answer (OperationalError)."},
    }


async def test_metrics_count_over_all_processes(browser: Browser):
    await all_is_well()
    provider_reports.read_off_counts()
    for _ in range(2):  # as two processes would do, each with its own notes
        recorder = Recorder()
        with provider_reports.counted("base:0"):
            pass
        for fault in (ProviderDown("Base", "no answer"), ProviderBusy("Base", "too many")):
            with pytest.raises(type(fault)), provider_reports.counted("base:0"):
                raise fault
        provider_reports.count("base:0", provider_reports.THROTTLED)
        async with transaction() as db:
            await counters.add(db, counters.ROLE_WRITES, {("give", "done"): 3})
        await recorder.publish()
        assert recorder.counts() == {}
    async with transaction() as db:
        await provider_records.keep(db, [ProviderReport("base:0", "down", now(), "no answer")])
    found = await numbers(browser)
    assert found["holdfast_build_info", version()] == 1
    assert found["holdfast_provider_answers_total", "ok", "base:0"] == 2
    assert found["holdfast_provider_errors_total", "base:0"] == 4
    assert found["holdfast_provider_throttled_total", "base:0"] == 2
    assert found["holdfast_role_writes_total", "give", "done"] == 6
    assert found["holdfast_provider_up", "base:0"] == 0
    assert found[("holdfast_bot_connected",)] == 1
    assert found[("holdfast_sweep_members",)] == 3
    assert found[("holdfast_queue_members",)] == 0


async def test_a_provider_that_nobody_asks_again_is_in_no_metric_of_the_present(browser: Browser):
    """Its last report stays in the database: it would be down forever, and an alert would fire."""
    await all_is_well()
    async with transaction() as db:
        long_ago = now() - timedelta(days=3)
        names = ("base:1", "base:2", "gone:0", "opensea", "magic eden", "alchemy")
        await provider_records.keep(db, [ProviderReport(name, "down", long_ago) for name in names])
    found = await numbers(browser)
    for name in ("holdfast_provider_up", "holdfast_provider_silent_seconds"):
        assert {label for metric, *labels in found if metric == name for label in labels} == {"base:1", "opensea"}


async def test_the_operators_page_names_every_metric_as_it_is_exposed(browser: Browser):
    await all_is_well()
    answer = await browser.client.get("/metrics")
    exposed = set(re.findall(r"^# TYPE (\S+)", answer.text, re.MULTILINE))
    page = (Path(__file__).parents[3] / "docs" / "operating.md").read_text()
    named = set(re.findall(r"`(holdfast_[a-z_]+)`", page))
    assert "holdfast_sweep_finished_timestamp_seconds" in exposed
    assert named == exposed


def asked_from(address: str, url: str = PUBLIC_URL) -> httpx.AsyncClient:
    """Return a client that calls from this address."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=api, client=(address, 4711)), base_url=url)


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_token_only_this_machine_sees_it(path: str):
    for address, status in (("203.0.113.9", 404), ("::ffff:203.0.113.9", 404), ("::ffff:127.0.0.1", 503), ("::1", 503)):
        async with asked_from(address) as client:
            answer = await client.get(path)
            assert answer.status_code in ({404} if status == 404 else {200, 503})


@pytest.mark.parametrize("path", PATHS)
async def test_under_a_public_name_the_own_address_proves_nothing(path: str, monkeypatch: pytest.MonkeyPatch):
    # With a proxy on this machine, all callers come from 127.0.0.1.
    public = settings().model_copy(update={"public_url": "https://roles.example"})
    monkeypatch.setattr("app.api.health.settings", lambda: public)
    async with asked_from("127.0.0.1", "https://roles.example") as client:
        assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize("path", PATHS)
async def test_with_a_token_it_is_what_counts(path: str, monkeypatch: pytest.MonkeyPatch):
    guarded = settings().model_copy(update={"monitor_token": SecretStr("a long token")})
    monkeypatch.setattr("app.api.health.settings", lambda: guarded)
    async with asked_from("127.0.0.1") as client:
        assert (await client.get(path)).status_code == 404
        for wrong in ("a long token", "Bearer a long toke", "Bearer é"):
            assert (await client.get(path, headers={b"Authorization": wrong.encode()})).status_code == 404
    async with asked_from("203.0.113.9") as client:
        answer = await client.get(path, headers={"Authorization": "Bearer a long token"})
        assert answer.status_code in {200, 503}


async def test_a_token_may_have_any_letters(product: None, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = settings().model_copy(update={"monitor_token": SecretStr("schlüssel ключ")})
    monkeypatch.setattr("app.api.health.settings", lambda: guarded)
    async with asked_from("203.0.113.9") as client:
        answer = await client.get("/metrics", headers={b"Authorization": "Bearer schlüssel ключ".encode()})
        assert answer.status_code == 200


async def test_no_secret_is_told(browser: Browser):
    await all_is_well()
    for path in PATHS:
        told = (await browser.client.get(path)).text
        for secret in ("discord_bot_token", "discord_client_secret", "secret_key", "database_url"):
            value = getattr(settings(), secret)
            plain = value.get_secret_value() if isinstance(value, SecretStr) else value
            assert not plain or plain not in told


async def test_the_public_status_needs_no_session_and_says_when_the_database_is_away(browser: Browser):
    public_status._readings.clear()
    answer = await browser.client.get("/api/status")
    body = answer.json()
    assert (answer.status_code, body["version"], body["database"]) == (200, version(), True)
    assert {"state", "headline", "providers", "chains", "lastSweep"} < set(body)
    assert [one["name"] for one in body["providers"]] == ["Bot", "Discord", "OpenSea"]
    public_status._readings.clear()
    await models.use("postgresql+psycopg://nobody@/nothing?host=/nowhere")
    answer = await browser.client.get("/api/status")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["headline"] == "The database does not answer, so nothing else is known"
    public_status._readings.clear()
