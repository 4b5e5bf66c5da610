"""The health of all background work, for monitors: each part with its state and numbers."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from locales import _, ngettext, sentences
from locales.stored_texts import said
from models import Schedule, now
from models.db.session import AsyncSession
from services.core.json_view import json_view
from services.core.relative_times import length
from services.guilds import members_intent
from services.guilds.gateway import identifies
from services.health import backlog, provider_health, provider_records
from services.health.views import BAD, GOOD, WARNING, LagHealth, SweepHealth, worst
from services.roles import breaker
from services.runtime import schedules
from services.triggers import chain_cursor, watch_list
from services.triggers.chain_cursor import CONTRACTS

FOLLOWER_LATE_AFTER = timedelta(minutes=30)
"""The lag from which the state is bad; a shorter one is at most a warning, because sweeps find what followers miss."""
HOUSEKEEPING_LATE_AFTER = timedelta(hours=1)
"""Data must not be kept longer than the policy says, and no other part notices that the schedule has stopped."""


@json_view
class PartHealth:
    """One part's state (good, warning, bad or off) and a sentence."""

    state: str
    text: str


@json_view
class WorkHealth(PartHealth):
    """The queues over all servers: members to reconcile, role changes to write, and how long they have waited."""

    due: int
    oldest_seconds: int
    retrying: int
    writes: int
    oldest_write_seconds: int
    writes_failing: int


@json_view
class BotHeartbeat(PartHealth):
    """When the bot last reported; `seconds` is how long ago."""

    connected: bool
    seconds: int | None


@dataclass(frozen=True, slots=True)
class DeepHealth:
    """The state of everything at one moment; `state` is the worst of all."""

    state: str
    checked_at: datetime
    database: PartHealth
    queue: WorkHealth
    bot: BotHeartbeat
    followers: tuple[LagHealth, ...]
    last_sweep: SweepHealth
    housekeeping: PartHealth


def without_database(reason: str) -> PartHealth:
    """Return the health of a database that does not answer."""
    return PartHealth(BAD, _("The database does not answer ({reason}).").format(reason=reason))


def of_redis(*, answers: bool) -> PartHealth:
    """Return the health of Redis, which has the state of the screens."""
    if answers:
        return PartHealth(GOOD, _("Redis answers."))
    return PartHealth(BAD, _("Redis does not answer. Until it does, no screen gets beyond Loading."))


async def view(db: AsyncSession) -> DeepHealth:
    """Return the state of everything; it is in the database, so any process can report it."""
    moment = now()
    queue = await work(db)
    bot = await heartbeat(db, moment)
    followers = await lag(db, moment)
    sweep = await backlog.last_sweep(db, moment)
    kept = await housekeeping(db, moment)
    state = worst(queue.state, bot.state, sweep.state, kept.state, *(one.state for one in followers))
    database = PartHealth(GOOD, _("The database answers."))
    return DeepHealth(state, moment, database, queue, bot, followers, sweep, kept)


async def work(db: AsyncSession) -> WorkHealth:
    """Return the queues over all servers."""
    row = (
        await db.execute(
            f"""
            SELECT d.due, d.age, d.retrying, g.open, g.age, g.failing FROM
            (SELECT count(*) FILTER (WHERE due_at <= now()) AS due,
                    count(*) FILTER (WHERE attempts > 0) AS retrying,
                    EXTRACT(EPOCH FROM now() - min(due_at) FILTER (WHERE due_at <= now())) AS age
             FROM due WHERE kind = 'member') d,
            (SELECT count(*) AS open, count(*) FILTER (WHERE g.last_error IS NOT NULL) AS failing,
                    EXTRACT(EPOCH FROM now() - min(g.intended_at)) AS age
             FROM "grant" g JOIN server s ON s.id = g.server_id AND s.bot_invited
             LEFT JOIN breaker b ON b.server_id = g.server_id AND b.role_id = g.role_id
                  AND {breaker.IS_WAITING} AND g.state = 'taking'
             WHERE g.state IN ('giving', 'taking') AND b.role_id IS NULL) g
            """
        )
    ).one()
    due, age, retrying, writes, write_age, failing = (max(0, int(value or 0)) for value in row)
    late = backlog.LATE_AFTER.total_seconds()
    checks = ngettext(
        "{count} member waits to be checked, the first for {length}.",
        "{count} members wait to be checked, the first for {length}.",
        due,
    ).format(count=due, length=length(age))
    changes = ngettext(
        "{count} role change waits to be written, the first for {length}.",
        "{count} role changes wait to be written, the first for {length}.",
        writes,
    ).format(count=writes, length=length(write_age))
    parts = (
        checks if due else "",
        backlog.to_retry(retrying) if retrying else "",
        changes if writes else "",
        backlog.not_written(failing) if failing else "",
    )
    told = sentences(*filter(None, parts)) or _("Nobody waits.")
    state = BAD if age > late else WARNING if write_age > late or retrying or failing else GOOD
    return WorkHealth(state, told, due, age, retrying, writes, write_age, failing)


async def heartbeat(db: AsyncSession, moment: datetime) -> BotHeartbeat:
    """Return whether the bot is alive and connected to Discord's gateway."""
    row = (await provider_records.states(db)).get(provider_records.BOT)
    if row is None:
        return BotHeartbeat(BAD, _("The bot has never run."), False, None)
    seconds = max(0, int((moment - row.checked_at).total_seconds()))
    if provider_health.bot_is_silent(row, moment):
        return BotHeartbeat(
            BAD, _("The bot was last heard from {length} ago.").format(length=length(seconds)), False, seconds
        )
    if row.state != "ok":
        text = _("The bot runs, but is not connected to Discord.")
        if row.reason:
            text = _("The bot runs, but is not connected to Discord ({reason}).")
        return BotHeartbeat(BAD, text.format(reason=said(row.reason or "")), False, seconds)
    connected = _("The bot is connected to Discord.")
    if scarce := await identifies.warning(db):
        return BotHeartbeat(WARNING, sentences(connected, scarce), True, seconds)
    if row.reason == members_intent.NOT_TOLD:
        return BotHeartbeat(WARNING, f"{connected} {said(members_intent.NOT_TOLD)}", True, seconds)
    count, _servers = await members_intent.count_members(db)
    parts = (connected, said(row.reason or ""), members_intent.review_warning(count))
    return BotHeartbeat(GOOD, sentences(*filter(None, parts)), True, seconds)


async def housekeeping(db: AsyncSession, moment: datetime) -> PartHealth:
    """Return whether expired data is deleted: a jobs process may be away, or the deletion may fail."""
    row = await db.get(Schedule, schedules.HOUSEKEEPING, populate_existing=True)
    late = moment - row.next_at if row is not None else timedelta()
    if late > HOUSEKEEPING_LATE_AFTER:
        told = _("The deletion of expired data is {length} late.").format(length=length(late.total_seconds()))
        return PartHealth(BAD, told)
    return PartHealth(GOOD, _("Expired data is deleted."))


def follower_late_after(chain: str) -> timedelta:
    """Return the time without a poll from which a chain's follower is bad."""
    return provider_health.late_after(chain, FOLLOWER_LATE_AFTER)


async def lag(db: AsyncSession, moment: datetime) -> tuple[LagHealth, ...]:
    """Return how far behind the followers of chains in rules are. Only a follower that is late is bad."""
    watched = await watch_list.named(db)
    followed = [one for one in await chain_cursor.views(db) if one.chain in watched and one.kind == CONTRACTS]
    unreadable = provider_health.unreadable(await provider_records.states(db), watched, moment)
    found = provider_health.lag(followed, moment, unreadable=unreadable)
    return tuple(replace(one, state=_urgency(one)) for one in found)


def _urgency(one: LagHealth) -> str:
    if one.seconds > follower_late_after(one.chain).total_seconds():
        return BAD
    return WARNING if one.state == BAD else one.state
