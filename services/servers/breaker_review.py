"""An admin's review of removals that the breaker stopped: who would lose which role, by which evidence, and why."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import col, select

from gateways import Gateways
from locales import N_, _, ngettext
from models import Breaker, Event, Rule
from models.db.session import AsyncSession
from services.collections import collections
from services.core.actors import Actor
from services.core.audit import EventView
from services.core.discord_text import DEFAULT_COLOR
from services.core.errors import Conflict
from services.core.json_view import json_view
from services.guilds import permissions
from services.guilds.role_safety import UNKNOWN_ROLE
from services.roles import breaker
from services.servers import activity
from services.servers.activity_sentences import readings_of, sentence, why_not

NAMED = 200
"""Members listed by name; the others are counted."""
CAUSES = frozenset({"rule.changed", "rule.deleted"})
CAUSE_WITHIN = timedelta(hours=24)
ROUNDED = timedelta(seconds=1)
DECIDED = N_("Nobody waits for a decision about this role any more.")


@json_view
class Loser:
    """A member who would lose the role, and what two agreeing readings show of their holdings."""

    discord_id: str
    name: str
    reason: str


@json_view
class HeldBackView:
    """The stopped removals of one role.

    `wouldLose` of `holders` tripped the breaker: members whose role was taken within the day, is being taken or was
    about to be. `losers` are the members who wait now, `total` of them. `cause` is the latest change to a rule before
    the trip, in words, or empty.
    """

    role_id: str
    role_name: str
    role_color: str
    tripped_at: datetime
    would_lose: int
    holders: int
    losers: tuple[Loser, ...]
    total: int
    cause: str


async def of_server(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> list[HeldBackView]:
    """Return the stopped removals of a server, oldest first. Raises ServerNotFound unless the actor runs it."""
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    waiting = sorted(await breaker.tripped(db, server_id), key=lambda row: (row.tripped_at, row.role_id))
    return [await _view(db, row) for row in waiting]


@dataclass(frozen=True, slots=True)
class Trip:
    """The state of a role as an admin was shown it: when the breaker tripped, and how many members wait."""

    tripped_at: datetime
    total: int


async def trips(db: AsyncSession, server_id: int) -> dict[str, Trip]:
    """Return the roles with stopped removals, without checking permissions.

    Use it only to decide whether to call `of_server`.
    """
    waiting = await breaker.tripped(db, server_id)
    counts = await db.execute(_COUNTS, {"server": server_id, "roles": [row.role_id for row in waiting]})
    totals = {str(role_id): int(count) for role_id, count in counts.all()}
    return {row.role_id: Trip(row.tripped_at, totals.get(row.role_id, 0)) for row in waiting}


async def decide(
    db: AsyncSession,
    outside: Gateways,
    actor: Actor,
    server_id: int,
    role_id: str | None = None,
    seen: Trip | None = None,
    *,
    approve: bool,
) -> int:
    """Permit the stopped removals of one role or of all, or dismiss them; return the number of roles.

    After a dismissal the members concerned keep the role until a rule says yes to them again. Raises as `of_server`
    does, and Conflict if the role no longer waits as `seen` says.
    """
    await _check(db, outside, actor, server_id, role_id, seen)
    roles = await (breaker.approve if approve else breaker.dismiss)(db, server_id, actor.discord_id, role_id)
    if seen is not None and not roles:
        raise Conflict(_(DECIDED))  # somebody else has decided meanwhile
    return roles


async def _check(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, role_id: str | None, seen: Trip | None
) -> None:
    """Raise Conflict if the role no longer waits, has tripped again since `seen`, or more members wait than then."""
    await permissions.require_admin(db, outside, actor, server_id)
    if seen is None:
        return
    present = (await trips(db, server_id)).get(role_id or "")
    if present is None:
        raise Conflict(_(DECIDED))
    # A program may round the time.
    if abs(present.tripped_at - seen.tripped_at) >= ROUNDED:
        again = ngettext(
            "The breaker has tripped again: {count} member waits now. Please look again.",
            "The breaker has tripped again: {count} members wait now. Please look again.",
            present.total,
        )
        raise Conflict(again.format(count=present.total))
    if present.total > seen.total:
        # Translators: {seen} is the number of members that was shown.
        more = ngettext(
            "{count} member waits by now, not {seen}. Please look again.",
            "{count} members wait by now, not {seen}. Please look again.",
            present.total,
        )
        raise Conflict(more.format(count=present.total, seen=seen.total))


async def _view(db: AsyncSession, row: Breaker) -> HeldBackView:
    rule = (
        await db.exec(
            select(Rule)
            .where(Rule.server_id == row.server_id, Rule.role_id == row.role_id)
            .order_by(col(Rule.id).desc())
            .limit(1)
        )
    ).first()
    named = {} if rule else (await activity.role_names(db, row.server_id, [row.role_id]))
    waiting = await db.execute(_NAMES, {"server": row.server_id, "roles": [row.role_id], "most": NAMED})
    total, losers = 0, list[tuple[str, str, list[dict[str, Any]]]]()
    for who, name, evidence, count in waiting.all():
        total = int(count)
        losers.append((str(who), str(name), readings_of(evidence)))
    places = {(str(one.get("chain")), str(one.get("contract"))) for _, _, found in losers for one in found}
    names = await collections.names(db, places)
    return HeldBackView(
        role_id=row.role_id,
        role_name=rule.role_name if rule else named.get(row.role_id, _(UNKNOWN_ROLE)),
        role_color=rule.role_color if rule else DEFAULT_COLOR,
        tripped_at=row.tripped_at,
        would_lose=row.would_lose,
        holders=row.holders,
        losers=tuple(
            Loser(discord_id, name, why_not(found, names) or _("no rule is left that gives it"))
            for discord_id, name, found in losers
        ),
        total=total,
        cause=await _cause(db, row),
    )


_WAITING = """
    FROM "grant" g
    JOIN member m ON m.server_id = g.server_id AND m.discord_id = g.discord_id AND m.left_at IS NULL
    WHERE g.server_id = :server AND g.role_id = ANY(:roles)
    AND (g.held_back_at IS NOT NULL AND g.gift_since IS NULL OR g.state = 'taking')
"""
_NAMES = f"""
    SELECT g.discord_id, m.name, g.evidence, count(*) OVER () {_WAITING}
    ORDER BY lower(m.name), g.discord_id LIMIT :most
"""
_COUNTS = f"SELECT g.role_id, count(*) {_WAITING} GROUP BY g.role_id"


async def _cause(db: AsyncSession, row: Breaker) -> str:
    """Return the newest change to a rule for this role shortly before the trip, in words; empty without one."""
    event = (
        await db.exec(
            select(Event)
            .where(
                Event.server_id == row.server_id, Event.role_id == row.role_id, col(Event.kind).in_(CAUSES),
                col(Event.at).between(row.tripped_at - CAUSE_WITHIN, row.tripped_at),
            )
            .order_by(col(Event.id).desc())
            .limit(1)
        )
    ).first()  # fmt: skip
    if event is None:
        return ""
    view = EventView.of(event)
    return sentence(view, await activity.names_of(db, row.server_id, [view]))
