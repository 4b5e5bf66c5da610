"""The state of our own work for a server: sweep, queue, paused rules, stopped removals, unknown readings."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlmodel import col, select

from locales import N_, _, ngettext, sentences, series
from locales.stored_texts import said, storable
from models import Alert, Breaker, Rule, Schedule, Server
from models.db.session import AsyncSession
from services.core.queue import OF_SERVER
from services.core.relative_times import ago, length
from services.guilds.role_safety import UNKNOWN_ROLE, bare, translated
from services.health.views import (
    BAD,
    GOOD,
    OFF,
    WARNING,
    AlertsHealth,
    BreakerHealth,
    LeftAlone,
    PausedRule,
    QueueHealth,
    RivalHealth,
    SweepHealth,
    TruceHealth,
    UnknownReading,
)
from services.roles import breaker, rival_reports
from services.roles.rival_reports import Rival, TruceOfRole
from services.rules import pausing
from services.triggers import sweep

LATE_AFTER = timedelta(minutes=10)
"""How late the sweep, or the first member in the queue, may be before that is a problem."""
_LASTING_TRIES = 12
"""Failed tries after which a problem counts as lasting: their pauses add up to five minutes or more."""
_PAUSED = N_("Paused by an admin")
_JOBS_AWAY = N_("The background jobs do not run: tell the person who runs the bot.")


async def last_sweep(db: AsyncSession, now: datetime) -> SweepHealth:
    """Return the state of the sweep over all servers."""
    row = await db.get(Schedule, sweep.SCHEDULE, populate_existing=True)
    if row is None:
        return SweepHealth(
            state=WARNING, text=_("No daily sweep is planned yet."),
            mend=_(_JOBS_AWAY),
            started_at=None, finished_at=None, next_at=None, members=0, left=0,
        )  # fmt: skip
    left = (await sweep.progress(db)).left if row.started_at and row.finished_at is None else 0
    late = row.next_at < now - LATE_AFTER
    if row.started_at is None:
        told = _("The first daily sweep has not begun yet.")
    elif row.finished_at is None:
        told = _under_way(left, row.total, sweep.seconds_left(row.started_at, now, row.total, left))
    else:
        # Translators: {ago} is such as "3 minutes ago".
        told = ngettext(
            "The last sweep checked {count} member and ended {ago}.",
            "The last sweep checked {count} members and ended {ago}.",
            row.total,
        ).format(count=row.total, ago=ago(row.finished_at, now))
    if late:
        behind = _("The next one is {length} late.").format(length=length((now - row.next_at).total_seconds()))
        told = sentences(told, behind)
    mend = _(_JOBS_AWAY) if late else None
    return SweepHealth(
        state=BAD if late else GOOD, text=told, mend=mend, started_at=row.started_at, finished_at=row.finished_at,
        next_at=row.next_at, members=row.total, left=left,
    )  # fmt: skip


def _under_way(left: int, total: int, more: float | None) -> str:
    if not more or more < 1:
        # Translators: {left} of {count} members: the plural is about {count}.
        return ngettext(
            "A daily sweep is in progress: {left} of {count} member still waits.",
            "A daily sweep is in progress: {left} of {count} members still wait.",
            total,
        ).format(left=left, count=total)
    return ngettext(
        "A daily sweep is in progress: {left} of {count} member still waits, which takes about {length} more.",
        "A daily sweep is in progress: {left} of {count} members still wait, which takes about {length} more.",
        total,
    ).format(left=left, count=total, length=length(more))


async def paused_rules(db: AsyncSession, server_id: int) -> tuple[PausedRule, ...]:
    """Return the paused rules, oldest first."""
    rows = await db.exec(
        select(Rule)
        .where(Rule.server_id == server_id, Rule.state == "paused", col(Rule.deleted_at).is_(None))
        .order_by(col(Rule.id))
    )
    return tuple(
        PausedRule(
            WARNING if row.pause_cause else OFF, row.id or 0, row.name, row.role_id, row.role_name,
            row.paused_at or row.updated_at, row.pause_cause or "admin",
            bare(row.pause_cause, translated(row.pause_reason or _PAUSED, row.role_name), row.role_name),
            _(pausing.mend_of(row.pause_cause)), row.pause_cause is not None,
        )
        for row in rows.all()
    )  # fmt: skip


async def breakers(db: AsyncSession, server_id: int, names: dict[str, str]) -> tuple[BreakerHealth, ...]:
    """Return the roles whose removals wait for an admin."""
    return tuple(_breaker(row, names) for row in await breaker.tripped(db, server_id))


def _breaker(row: Breaker, names: dict[str, str]) -> BreakerHealth:
    name = names.get(row.role_id) or _(UNKNOWN_ROLE)
    return BreakerHealth(
        state=BAD,
        # Translators: {lost} of {count} holders: the plural is about {count}.
        text=ngettext(
            "{lost} of {count} holder would have lost {role} within a day, so nothing more is taken for it.",
            "{lost} of {count} holders would have lost {role} within a day, so nothing more is taken for it.",
            row.holders,
        ).format(lost=row.would_lose, count=row.holders, role=name),
        mend=_("Check why, then approve the removals if they are right."),
        role_id=row.role_id, role_name=name, would_lose=row.would_lose, holders=row.holders, since=row.tripped_at,
    )  # fmt: skip


def own_fault(fault: Exception) -> str:
    """Return the text, to store for Health, about work that fails by our own error; the jobs log has the details."""
    return storable(
        "a fault of our own ({name}), which the person who runs the bot finds in the jobs' log",
        name=type(fault).__name__,
    )


async def queue(db: AsyncSession, server_id: int, now: datetime) -> QueueHealth:
    """Return the members who wait to be reconciled, and the role changes that wait."""
    values = {"server": server_id, "many": _LASTING_TRIES, "late": LATE_AFTER}
    row = (await db.execute(_WAITING_HERE, values)).one()
    due, oldest_at, failing, stuck, writes, writes_failing, rests, nothing_is_written = row
    # Many changes take hours at Discord's limits, so only a server without any recent one or any recent try waits for
    # the writer.
    waits = (oldest_at is not None and now - oldest_at > LATE_AFTER) or (nothing_is_written and rests is None)
    parts = [
        _waiting(due),
        "" if failing == 0 else to_retry(failing),
        "" if writes == 0 else _writes(writes),
        "" if writes_failing == 0 else not_written(writes_failing),
        "" if stuck == 0 else _stuck(stuck),
        "" if rests is None else _(_REFUSED_MUCH).format(length=length(rests)),
    ]
    state = BAD if waits or stuck or rests is not None else WARNING if failing or writes_failing else GOOD
    mend = _(_RESTS) if rests is not None else _(_STUCK) if stuck else None
    if waits:
        mend = _("The background jobs do not keep up: tell the person who runs the bot.")
    return QueueHealth(
        state=state, text=sentences(*filter(None, parts)), mend=mend, due=due, oldest_at=oldest_at,
        failing=failing, writes=writes, writes_failing=writes_failing,
    )  # fmt: skip


_WAITING_HERE = f"""
    WITH queued AS (
        SELECT count(*) FILTER (WHERE due_at <= now()) AS due, min(due_at) FILTER (WHERE due_at <= now()) AS oldest_at,
               count(*) FILTER (WHERE attempts > 0) AS failing, count(*) FILTER (WHERE attempts >= :many) AS stuck
        FROM (SELECT CAST(:server AS integer) AS id) s JOIN due d ON {OF_SERVER}
    ), writes AS (
        SELECT count(*) AS open, count(*) FILTER (WHERE last_error IS NOT NULL) AS failing,
               count(*) FILTER (WHERE attempts >= :many) AS stuck,
               count(*) FILTER (WHERE attempts > 0 AND next_at > now() - CAST(:late AS interval)) AS tried_lately
        FROM "grant" WHERE server_id = :server AND state IN ('giving', 'taking')
    )
    SELECT q.due, q.oldest_at, q.failing, q.stuck + w.stuck, w.open, w.failing,
           (SELECT extract(epoch FROM r.rests_until - now()) FROM guild_refusal r
            JOIN server s ON s.discord_id = r.guild_id
            WHERE s.id = :server AND r.rests_until > now()),
           w.tried_lately = 0
           AND EXISTS (SELECT FROM "grant" g JOIN server s ON s.id = g.server_id AND s.bot_invited
               WHERE g.server_id = :server AND g.state IN ('giving', 'taking') AND g.attempts = 0
               AND g.last_error IS NULL AND g.next_at < now() - CAST(:late AS interval)
               AND CASE g.state WHEN 'taking' THEN NOT EXISTS (SELECT FROM breaker b
                   WHERE b.server_id = g.server_id AND b.role_id = g.role_id
                   AND {breaker.IS_WAITING})
               ELSE EXISTS (SELECT FROM rule r WHERE r.server_id = g.server_id AND r.role_id = g.role_id
                   AND r.state = 'active' AND r.deleted_at IS NULL)
                   AND NOT EXISTS (SELECT FROM member m WHERE m.server_id = g.server_id
                   AND m.discord_id = g.discord_id AND m.pending) END)
           AND NOT EXISTS (SELECT FROM event e WHERE e.server_id = :server
               AND e.kind IN ('role.given', 'role.taken') AND e.at > now() - CAST(:late AS interval))
    FROM queued q CROSS JOIN writes w
"""
"""What waits in one server; the last column says whether changes that are due are neither written nor tried."""


def _waiting(count: int) -> str:
    if count == 0:
        return _("Nobody waits to be checked.")
    return ngettext("{count} member waits to be checked.", "{count} members wait to be checked.", count).format(
        count=count
    )


def to_retry(count: int) -> str:
    """Say how many members could not be read and are read again later."""
    return ngettext(
        "{count} member waits for a second try, because something could not be read.",
        "{count} members wait for a second try, because something could not be read.",
        count,
    ).format(count=count)


def _writes(count: int) -> str:
    return ngettext(
        "{count} role change waits to be written.", "{count} role changes wait to be written.", count
    ).format(count=count)


def not_written(count: int) -> str:
    """Say how many role changes failed; it follows a sentence on how many wait."""
    return ngettext(
        "Of these, {count} could not be written yet.", "Of these, {count} could not be written yet.", count
    ).format(count=count)


def _stuck(count: int) -> str:
    return ngettext(
        "{count} of these failed {times} times or more and is tried ever more rarely.",
        "{count} of these failed {times} times or more and are tried ever more rarely.",
        count,
    ).format(count=count, times=_LASTING_TRIES)


_REFUSED_MUCH = N_("Discord refused so much in this server that no role is written for {length}.")
_RESTS = N_(
    "Check the bot's role and its permissions in Server Settings › Roles. It continues afterwards; other servers "
    "are not affected."
)
_STUCK = N_(
    "Fix the cause shown here (a provider, a role, a permission). We retry within 5 minutes, or at once after "
    "Re-check. If it is a fault of our own, tell the person who runs the bot."
)


async def unknown(db: AsyncSession, server_id: int) -> tuple[UnknownReading, ...]:
    """Return why members of this server wait for a retry, the most frequent reason first."""
    rows = await db.execute(
        f"""
        SELECT 'unknown', reason, count(*) FROM (SELECT CAST(:server AS integer) AS id) s JOIN due d ON {OF_SERVER}
        WHERE reason IS NOT NULL GROUP BY reason
        UNION ALL
        SELECT 'not written', last_error, count(DISTINCT discord_id) FROM "grant"
        WHERE server_id = CAST(:server AS integer) AND state IN ('giving', 'taking') AND last_error IS NOT NULL
        GROUP BY last_error
        ORDER BY 3 DESC, 2 LIMIT 20
        """,
        {"server": server_id},
    )
    return tuple(
        UnknownReading(
            state=WARNING,
            text=_unknown_for(int(count), said(str(reason))) if what == "unknown" else _not_written_for(
                int(count), said(str(reason))
            ),
            reason=said(str(reason)), members=int(count),
        )
        for what, reason, count in rows.all()
    )  # fmt: skip


def _unknown_for(count: int, reason: str) -> str:
    return ngettext(
        "Unknown for {count} member, whose roles stay as they are: {reason}",
        "Unknown for {count} members, whose roles stay as they are: {reason}",
        count,
    ).format(count=count, reason=reason)


def _not_written_for(count: int, reason: str) -> str:
    return ngettext(
        "Not written for {count} member, whose roles stay as they are: {reason}",
        "Not written for {count} members, whose roles stay as they are: {reason}",
        count,
    ).format(count=count, reason=reason)


async def alerts(db: AsyncSession, server: Server) -> AlertsHealth:
    """Return whether alerts reach the admins' channel."""
    if server.log_channel_id is None:
        return AlertsHealth(
            state=OFF, text=_("No log channel is chosen, so problems are shown only here."),
            mend=_("Choose one on the Verification channel tab."), channel_id=None, error=None,
        )  # fmt: skip
    rows = await db.exec(
        select(Alert.last_error)
        .where(Alert.server_id == server.id, col(Alert.last_error).is_not(None), col(Alert.attempts) > 0)
        .order_by(col(Alert.id).desc())
        .limit(1)
    )
    if error := rows.first():
        return AlertsHealth(
            state=WARNING, text=_("The last alert could not be posted: {error}").format(error=said(error)),
            mend=_("Let the bot see the log channel and write in it, or choose another one."),
            channel_id=server.log_channel_id, error=error,
        )  # fmt: skip
    text = _("Alerts are posted in the log channel.")
    return AlertsHealth(state=GOOD, text=text, channel_id=server.log_channel_id, error=None)


MOST_LEFT_ALONE = 20
"""The most members of a truce that Health names."""


async def rivals(db: AsyncSession, server_id: int, *, named: bool) -> tuple[RivalHealth, ...]:
    """Return the rivals that give or take the roles of the server's rules; people only with a name if `named`."""
    found = await rival_reports.of_servers(db, [server_id])
    return tuple(_rival(one if named else one.unnamed()) for one in found)


async def truces(db: AsyncSession, server_id: int, *, named: bool) -> tuple[TruceHealth, ...]:
    """Return the roles that are left alone because of rivals, and, if they may be `named`, the members concerned."""
    return tuple([await _truce(db, one, named) for one in await rival_reports.truces_of_servers(db, [server_id])])


def _rival(one: Rival) -> RivalHealth:
    return RivalHealth(
        state=WARNING if one.against else GOOD, text=one.text, mend=one.mend or None, role_id=one.role_id,
        role_name=one.role_name, actor_id=one.actor_id, name=one.name, bot=one.bot, took=one.took, gave=one.gave,
        against=one.against, first_at=one.first_at, last_at=one.last_at, times=one.times,
    )  # fmt: skip


async def _truce(db: AsyncSession, one: TruceOfRole, named: bool) -> TruceHealth:
    members = await _left_alone(db, one) if named else ()
    return TruceHealth(
        state=WARNING, text=f"{one.text} {_concerned(members, one.total)}" if named else one.text,
        mend=one.mend, role_id=one.role_id, role_name=one.role_name, total=one.total, since=one.since, until=one.until,
        members=members,
    )  # fmt: skip


async def _left_alone(db: AsyncSession, one: TruceOfRole) -> tuple[LeftAlone, ...]:
    rows = await db.execute(
        "SELECT t.discord_id, COALESCE(m.name, t.discord_id), t.until FROM truce t "
        "LEFT JOIN member m ON m.server_id = t.server_id AND m.discord_id = t.discord_id "
        "WHERE t.server_id = :server AND t.role_id = :role AND t.until > now() "
        "ORDER BY lower(m.name), t.discord_id LIMIT :most",
        {"server": one.server_id, "role": one.role_id, "most": MOST_LEFT_ALONE},
    )
    return tuple(LeftAlone(*row) for row in rows.all())


def _concerned(members: Sequence[LeftAlone], total: int) -> str:
    """Return a sentence that names the members concerned."""
    names = series(member.name for member in members)
    if more := max(0, total - len(members)):
        # Translators: {names} are names of members, {count} is how many more there are.
        told = ngettext("Concerned: {names} and {count} more.", "Concerned: {names} and {count} more.", more)
    else:
        told = _("Concerned: {names}.")
    return told.format(names=names, count=more)
