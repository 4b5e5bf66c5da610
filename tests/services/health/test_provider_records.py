"""Provider states: a change is stored at once, the newest note wins, and a chain's state follows from its nodes."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from sqlmodel import select, update

from gateways.transport import provider_reports
from gateways.transport.errors import (
    NotThere,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderRefused,
    Unauthorized,
)
from gateways.transport.provider_reports import ProviderReport, Stale
from models import ProviderState, now, transaction
from services.health import provider_health, provider_records
from services.health.provider_records import Recorder
from services.rules import single_source
from services.runtime import counters
from settings import settings


@pytest.fixture(autouse=True)
def _quiet() -> None:
    provider_reports.read_off()


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (ProviderDown("x", "no answer"), "down"),
        (ProviderBusy("x", "too many"), "busy"),
        (Stale("x", "old"), "stale"),
        (ProviderConfused("x", "no JSON"), "confused"),
        (Unauthorized("x", "key", status=401), "refused"),
        (NotThere("x", "no such account"), "ok"),
        (ProviderRefused("x", "no", status=403, code=50013), "ok"),
    ],
)
def test_a_fault_says_how_its_provider_is_and_a_plain_refusal_says_it_answers(fault: Exception, state: str) -> None:
    with pytest.raises(type(fault)), provider_reports.watched("x"):
        raise fault
    (noted,) = provider_reports.read_off()
    assert (noted.provider, noted.state) == ("x", state)


def test_a_change_is_news_at_once_and_the_same_again_only_after_a_while() -> None:
    recorder = Recorder()
    provider_reports.answered("base:0", 7)
    assert [one.state for one in recorder.news()] == ["ok"]
    recorder.stored(recorder.news(), {})
    provider_reports.answered("base:0", 8)
    assert recorder.news() == []
    provider_reports.failed("base:0", ProviderDown("Base", "no answer"))
    assert [one.state for one in recorder.news()] == ["down"]


def test_a_clock_that_is_set_back_keeps_no_report_for_as_long() -> None:
    recorder, moment = Recorder(), datetime.now(UTC)
    recorder.stored([ProviderReport("base:0", "ok", moment)], {})
    provider_reports.answered("base:0", 8)
    assert recorder.news() == []
    recorder.stored([ProviderReport("base:0", "ok", moment + timedelta(hours=1))], {})
    assert [one.block for one in recorder.news()] == [8]


@pytest.mark.usefixtures("database")
async def test_reports_that_could_not_be_stored_are_stored_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> None:
        raise OSError("no database")

    recorder = Recorder()
    provider_reports.failed("base:0", ProviderDown("Base", "no answer"))
    with monkeypatch.context() as patch:
        patch.setattr(counters, "add", away)
        with pytest.raises(OSError, match="no database"):
            await recorder.publish()
    await recorder.publish()
    async with transaction() as db:
        assert [(one.provider, one.state) for one in (await provider_records.states(db)).values()] == [
            ("base:0", "down")
        ]
    assert recorder.news() == []


@pytest.mark.usefixtures("database")
async def test_the_newest_outcome_stands_and_since_is_when_the_state_began() -> None:
    start = now() - timedelta(minutes=5)
    for seconds, state, block in ((0, "ok", 10), (30, "down", None), (60, "down", None), (20, "ok", 11)):
        async with transaction() as db:
            await provider_records.keep(
                db, [ProviderReport("base:0", state, start + timedelta(seconds=seconds), None, block)]
            )
    async with transaction() as db:
        row = (await provider_records.states(db))["base:0"]
    assert (row.state, row.block) == ("down", 10)
    assert row.since == start + timedelta(seconds=30)
    assert row.checked_at == start + timedelta(seconds=60)
    assert row.ok_at == start


class TwoNodes:
    """Chains of which only Base has nodes, namely two."""

    def endpoints(self, chain: str) -> int:
        return 2 if chain == "base" else 0


class Outside:
    chains = TwoNodes()


def state(provider: str, answers: str, seconds_ago: int = 0) -> ProviderState:
    moment = now() - timedelta(seconds=seconds_ago)
    return ProviderState(provider=provider, state=answers, since=moment, checked_at=moment)


@pytest.mark.parametrize(
    ("first", "second", "states", "says"),
    [
        ("ok", "ok", ["good", "good"], "answers"),
        ("down", "ok", ["warning", "good"], "Removals on Base are paused"),
        ("stale", "ok", ["warning", "good"], "Removals on Base are paused"),
        ("down", "down", ["bad", "bad"], "Nothing is given or taken on Base"),
    ],
)
def test_a_dead_node_pauses_removals_on_its_chain_and_two_pause_everything(
    first: str, second: str, states: list[str], says: str
) -> None:
    known = {"base:0": state("base:0", first), "base:1": state("base:1", second)}
    found = provider_health.chain_nodes(Outside(), known, "base", True, now())  # pyright: ignore[reportArgumentType]
    assert [one.state for one in found] == states
    assert says in found[0].text
    assert [one.name for one in found] == ["Base node 1", "Base node 2"]


def test_a_chain_with_one_node_says_what_that_means_where_a_rule_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_source, "one_node", lambda chain: (f"{chain} has one node.", "Add one."))
    outside: Any = SimpleNamespace(chains=SimpleNamespace(endpoints=lambda chain: 1))
    known = {"base:0": state("base:0", "ok")}
    for used, is_, mend in ((True, "warning", "Add one."), (False, "good", None)):
        (node,) = provider_health.chain_nodes(outside, known, "base", used, now())
        assert (node.state, node.mend, "base has one node." in node.text) == (is_, mend, used)
    down = {"base:0": state("base:0", "down")}
    assert provider_health.chain_nodes(outside, down, "base", True, now())[0].state == "bad"


def test_a_node_of_which_nobody_heard_for_long_is_unknown_and_a_chain_without_nodes_is_off() -> None:
    known = {"base:0": state("base:0", "ok", 600)}
    nodes = provider_health.chain_nodes(Outside(), known, "base", True, now())  # pyright: ignore[reportArgumentType]
    assert [one.answers for one in nodes] == ["unknown", "unknown"]
    assert "was last heard from 10 minutes ago" in nodes[0].text
    for used, is_ in ((True, "bad"), (False, "off")):
        (off,) = provider_health.chain_nodes(Outside(), {}, "polygon", used, now())  # pyright: ignore[reportArgumentType]
        assert (off.answers, off.state) == ("off", is_)


@pytest.mark.usefixtures("database")
async def test_who_was_silent_or_in_trouble_is_asked() -> None:
    async with transaction() as db:
        await provider_records.keep(
            db, [ProviderReport("base:0", "ok", now()), ProviderReport("opensea", "down", now())]
        )
        assert await provider_records.silent(db, Outside()) == ["base:1"]  # pyright: ignore[reportArgumentType]
        await db.exec(update(ProviderState).values(checked_at=now() - timedelta(minutes=1)))
        assert await provider_records.silent(db, Outside()) == ["base:0", "base:1", "opensea"]  # pyright: ignore[reportArgumentType]
        assert len((await db.exec(select(ProviderState))).all()) == 2


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("pace", "unheard", "asked"),
    [("5", 15, False), ("5", 25, True), ("60", 110, False), ("60", 130, True), ("0", 590, False), ("0", 610, True)],
)
async def test_a_node_is_asked_as_rarely_as_its_chain_is_followed(
    monkeypatch: pytest.MonkeyPatch, pace: str, unheard: int, asked: bool
) -> None:
    monkeypatch.setenv("FOLLOW_SECONDS_BASE", pace)
    settings.cache_clear()
    async with transaction() as db:
        await provider_records.keep(db, [ProviderReport(name, "ok", now()) for name in ("base:0", "base:1")])
        await db.exec(update(ProviderState).values(checked_at=now() - timedelta(seconds=unheard)))
        found = await provider_records.silent(db, Outside())  # pyright: ignore[reportArgumentType]
        known = await provider_records.states(db)
    assert bool(found) == asked
    nodes = provider_health.chain_nodes(Outside(), known, "base", True, now())  # pyright: ignore[reportArgumentType]
    assert {one.answers for one in nodes} == {"ok"}, "a node that is asked rarely is not an unknown one"
    settings.cache_clear()


@pytest.mark.usefixtures("database")
async def test_a_node_in_trouble_is_asked_again_soon_at_any_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLLOW_SECONDS_BASE", "3600")
    settings.cache_clear()
    async with transaction() as db:
        await provider_records.keep(
            db, [ProviderReport("base:0", "ok", now()), ProviderReport("base:1", "down", now())]
        )
        await db.exec(update(ProviderState).values(checked_at=now() - timedelta(seconds=25)))
        assert await provider_records.silent(db, Outside()) == ["base:1"]  # pyright: ignore[reportArgumentType]
    settings.cache_clear()
