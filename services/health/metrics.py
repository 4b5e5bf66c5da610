"""Metrics for monitors, all read from the database, so that any number of processes reports the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gateways.transport import provider_reports
from models import Schedule, now
from models.db.session import AsyncSession
from services.guilds.gateway import identifies
from services.health import monitoring, provider_records
from services.roles import breaker
from services.runtime import counters
from services.triggers import sweep
from settings import version

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: a counter only grows (its name gets `_total`), a gauge is a present value."""

    kind: Literal["counter", "gauge"]
    name: str
    help: str
    samples: Sequence[tuple[Labels, float]]


def _gauge(name: str, help: str, value: float) -> Metric:
    return Metric("gauge", name, help, [({}, value)])


async def read(db: AsyncSession) -> list[Metric]:
    """Return every metric, in a fixed number of statements."""
    found = [*await _work(db), *await _counted(db), *await _providers(db), *await _sweep(db), *await _sizes(db)]
    return [Metric("gauge", "holdfast_build_info", "The running version", [({"version": version()}, 1)]), *found]


async def _work(db: AsyncSession) -> list[Metric]:
    moment = now()
    work = await monitoring.work(db)
    bot = await monitoring.heartbeat(db, moment)
    lag = await monitoring.lag(db, moment)
    return [
        _gauge("holdfast_queue_members", "Members who wait to be reconciled now", work.due),
        _gauge("holdfast_queue_oldest_seconds", "How long the first of them waits", work.oldest_seconds),
        _gauge("holdfast_queue_retrying", "Members who wait for a retry because something was unknown", work.retrying),
        _gauge("holdfast_role_writes_open", "Role changes that wait to be written", work.writes),
        _gauge("holdfast_role_writes_oldest_seconds", "How long the first of them waits", work.oldest_write_seconds),
        _gauge("holdfast_role_writes_failing", "Those of them that could not be written yet", work.writes_failing),
        _gauge("holdfast_bot_connected", "1 while the bot is connected to Discord's gateway", bot.connected),
        _gauge(
            "holdfast_bot_identifies_left", "New connections that Discord allows the bot today",
            (await identifies.budget(db)).left,
        ),
        Metric(
            "gauge", "holdfast_follower_lag_blocks", "Blocks between a chain's newest and the last one read",
            [({"chain": one.chain}, one.behind) for one in lag],
        ),
        Metric(
            "gauge", "holdfast_follower_silent_seconds", "How long ago a chain was last read on",
            [({"chain": one.chain}, one.seconds) for one in lag],
        ),
        Metric(
            "gauge", "holdfast_follower_late_seconds", "How long a chain may be silent: half an hour, or three polls",
            [({"chain": one.chain}, monitoring.follower_late_after(one.chain).total_seconds()) for one in lag],
        ),
    ]  # fmt: skip


async def _counted(db: AsyncSession) -> list[Metric]:
    totals = await counters.totals(db)
    answers = {(label, outcome): total for (name, label, outcome), total in totals.items() if name == counters.ANSWERS}
    writes = [(key, total) for key, total in totals.items() if key[0] == counters.ROLE_WRITES]
    asked = [(key, total) for key, total in answers.items() if key[1] != provider_reports.THROTTLED]
    return [
        Metric(
            "counter", "holdfast_role_writes", "Role changes by their result",
            [({"change": label, "result": outcome}, total) for (_, label, outcome), total in writes],
        ),
        Metric(
            "counter", "holdfast_bot_events_skipped", "Events of Discord's gateway that the bot could not read",
            [({"event": label}, total) for (name, label, _), total in totals.items() if name == counters.EVENTS],
        ),
        Metric(
            "counter", "holdfast_provider_answers", "Requests to a provider by how they ended",
            [({"provider": label, "outcome": outcome}, total) for (label, outcome), total in asked],
        ),
        Metric(
            "counter", "holdfast_provider_errors", "Requests to a provider without a usable answer",
            [
                ({"provider": provider}, sum(total for (name, how), total in asked if name == provider and how != "ok"))
                for provider in sorted({provider for (provider, _), _ in asked})
            ],
        ),
        Metric(
            "counter", "holdfast_provider_throttled", "Answers that asked us to slow down (429)",
            [
                ({"provider": label}, total)
                for (label, how), total in answers.items()
                if how == provider_reports.THROTTLED
            ],
        ),
    ]  # fmt: skip


async def _providers(db: AsyncSession) -> list[Metric]:
    moment = now()
    rows = [row for name, row in sorted((await provider_records.states(db)).items()) if name != provider_records.BOT]
    ages = [(row, (moment - row.checked_at).total_seconds()) for row in rows]
    return [
        Metric(
            "gauge", "holdfast_provider_up", "1 while a provider answers as it should",
            [({"provider": row.provider}, float(row.state == provider_reports.OK)) for row in rows],
        ),
        Metric(
            "gauge", "holdfast_provider_silent_seconds", "How long ago a provider was last heard",
            [({"provider": row.provider}, max(0.0, age)) for row, age in ages],
        ),
    ]  # fmt: skip


async def _sweep(db: AsyncSession) -> list[Metric]:
    row = await db.get(Schedule, sweep.SCHEDULE, populate_existing=True)
    if row is None:
        return []
    running = row.started_at is not None and row.finished_at is None
    left = (await sweep.progress(db)).left if running else 0
    found = [
        _gauge("holdfast_sweep_running", "1 while a sweep is running", running),
        _gauge("holdfast_sweep_members", "Members of the present or last sweep", row.total),
        _gauge("holdfast_sweep_left", "Those of them who still wait", left),
        _gauge("holdfast_sweep_next_timestamp_seconds", "When the next sweep begins", row.next_at.timestamp()),
    ]
    if row.started_at is not None:
        began = row.started_at.timestamp()
        found.append(_gauge("holdfast_sweep_started_timestamp_seconds", "When the last sweep began", began))
    if row.finished_at is not None:
        ended = row.finished_at.timestamp()
        found.append(_gauge("holdfast_sweep_finished_timestamp_seconds", "When the last sweep ended", ended))
    return found


async def _sizes(db: AsyncSession) -> list[Metric]:
    row = (
        await db.execute(
            f"""
            SELECT (SELECT count(*) FROM server WHERE bot_invited), (SELECT count(*) FROM wallet),
                   (SELECT count(*) FROM "grant" WHERE state = 'held'),
                   (SELECT count(*) FROM breaker b WHERE {breaker.IS_WAITING})
            """
        )
    ).one()
    states = await db.execute("SELECT state, count(*) FROM rule WHERE deleted_at IS NULL GROUP BY state ORDER BY state")
    return [
        _gauge("holdfast_servers", "Servers with the bot", row[0]),
        _gauge("holdfast_wallets", "Proven wallets", row[1]),
        _gauge("holdfast_roles_held", "Roles that members have from us", row[2]),
        _gauge("holdfast_breakers_tripped", "Roles whose removals wait for an admin", row[3]),
        Metric("gauge", "holdfast_rules", "Rules by their state", [({"state": s}, n) for s, n in states.all()]),
    ]
