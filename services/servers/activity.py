"""Read the audit log: filtered, in pages, with names for ids and a sentence for each line."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

from sqlalchemy import ColumnElement, exists, literal, literal_column, or_, tuple_
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import aliased
from sqlmodel import col, select

from gateways import Gateways
from gateways.transport.plain_text import one_line
from locales import _, day_and_clock, series
from models import Event, Member, Rule
from models.db.session import AsyncSession
from services.collections import collections
from services.core import rollups
from services.core.actors import Actor
from services.core.audit import EventView
from services.core.event_kinds import EVENT_KINDS, EventGroup
from services.core.json_view import json_view
from services.guilds import permissions
from services.rules.expression import parse_stored, requirements
from services.servers.activity_sentences import KnownNames, actor_name, readings_of, sentence

BY_ITSELF = "itself"
"""The value of `actor` for events that no person caused."""
UNDOABLE = frozenset(kind for kind, declared in EVENT_KINDS.items() if declared.undoable)
UNDONE: Final = "batch.undone"
LONGEST_QUERY = 100
_RULE_IDS = literal_column("(event.data -> 'ruleIds')", JSONB)
_BY_ADMINS = sorted(
    {kind for kind, declared in EVENT_KINDS.items() if declared.group not in {None, EventGroup.ROLES}}
    - {"recheck.asked", "member.chose", "member.chose_payout", "member.handed_over", "member.left", "member.forgotten"}
    | {"role.protected"}
)
"""Kinds that only people who run a server cause. The others have no actor, or any member who looks after themselves."""
FEW_LINES = 500
"""The most lines about a rule that are read by their ids."""
FEW_PEOPLE = 500
"""The most people with a matching name whose lines are found by their ids."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """A filter of the log; empty fields do not filter.

    `kind` has kinds or their families (`role.taken`, `role`), separated by commas. `member` is part of a name or a
    whole Discord id, `actor` a Discord id or BY_ITSELF. `since` is inclusive, `until` exclusive.
    """

    kind: str = ""
    member: str = ""
    role_id: str = ""
    rule_id: int | None = None
    actor: str = ""
    batch: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


@json_view
class LogLine:
    """One line of a server's log; people and roles by their Discord ids and, where known, by name.

    It is `undoable` while its batch can be undone.
    """

    id: int
    at: datetime
    kind: str
    text: str
    actor: str | None
    actor_name: str | None
    subject: str | None
    subject_name: str | None
    role_id: str | None
    role_name: str | None
    rule_id: int | None
    rule_name: str | None
    batch: str | None
    undoable: bool
    data: dict[str, Any]
    request_id: str | None


@dataclass(frozen=True, slots=True)
class LogChoices:
    """The choices of the log's filters: `(id, name)` of roles, rules and actors.

    The actors are those who changed something in the server, and those who run it: each of its members may have asked
    for a re-check, and these are found by the filter for members.
    """

    roles: tuple[tuple[str, str], ...]
    rules: tuple[tuple[int, str], ...]
    actors: tuple[tuple[str, str], ...]


async def read(
    db: AsyncSession,
    outside: Gateways,
    actor: Actor,
    server_id: int,
    wanted: LogFilter,
    *,
    before: int | None = None,
    limit: int = 50,
) -> list[LogLine]:
    """Return the newest lines that match the filter, or those before the line `before`.

    Raises ServerNotFound unless the actor runs the server, ProviderUnavailable.
    """
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    return await lines(db, server_id, wanted, before=before, limit=limit)


async def lines(
    db: AsyncSession, server_id: int, wanted: LogFilter, *, before: int | None = None, limit: int = 50
) -> list[LogLine]:
    """Return the lines as `read` does, without checking permissions."""
    query = select(Event).where(Event.server_id == server_id, *_conditions(wanted))
    if member := wanted.member.strip()[:LONGEST_QUERY]:
        query = query.where(await _about(db, server_id, member))
    if wanted.rule_id is not None:
        query = query.where(await _by_rule(db, server_id, wanted.rule_id))
    order = [col(Event.id)]
    if wanted.since is not None or wanted.until is not None:
        # Ordered by time, which is also the order of ids. By id, all lines after `until` would be read first.
        order = [col(Event.at), col(Event.id)]
    if before is not None and len(order) == 1:
        query = query.where(col(Event.id) < before)
    elif before is not None:
        last = select(Event.at).where(Event.id == before).scalar_subquery()
        query = query.where(tuple_(*order) < tuple_(last, literal(before)))
    rows = (await db.exec(query.order_by(*(one.desc() for one in order)).limit(limit))).all()
    found = [EventView.of(row) for row in rows]
    known = await names_of(db, server_id, found)
    undone = await _undone(db, server_id, {row.batch for row in rows if row.batch})
    return [_line(event, known, undone) for event in found]


def _line(event: EventView, known: KnownNames, undone: frozenset[str]) -> LogLine:
    return LogLine(
        id=event.id, at=event.at, kind=event.kind, text=sentence(event, known),
        actor=event.actor, actor_name=None if event.actor is None else actor_name(event, known),
        subject=event.subject, subject_name=None if event.subject is None else known.person(event.subject),
        role_id=event.role_id, role_name=known.roles.get(event.role_id or ""),
        rule_id=event.rule_id, rule_name=known.rules.get(event.rule_id or 0),
        batch=event.batch,
        undoable=event.kind in UNDOABLE and event.batch is not None and event.batch not in undone,
        data=event.data, request_id=event.request_id,
    )  # fmt: skip


async def _undone(db: AsyncSession, server_id: int, batches: set[Any]) -> frozenset[str]:
    if not batches:
        return frozenset()
    rows = await db.exec(
        select(Event.batch).where(Event.server_id == server_id, Event.kind == UNDONE, col(Event.batch).in_(batches))
    )
    return frozenset(map(str, rows.all()))


def _conditions(wanted: LogFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    kinds = [kind.strip() for kind in wanted.kind.split(",") if kind.strip()][:20]
    if kinds:
        kind = col(Event.kind)
        found.append(or_(*(or_(kind == one, kind.startswith(f"{one}.", autoescape=True)) for one in kinds)))
    if wanted.role_id:
        found.append(col(Event.role_id) == wanted.role_id)
    if wanted.actor:
        found.append(col(Event.actor).is_(None) if wanted.actor == BY_ITSELF else col(Event.actor) == wanted.actor)
    if wanted.batch is not None:
        found.append(col(Event.batch) == wanted.batch)
    if wanted.since is not None:
        found.append(col(Event.at) >= wanted.since)
    if wanted.until is not None:
        found.append(col(Event.at) < wanted.until)
    return found


async def _about(db: AsyncSession, server_id: int, member: str) -> ColumnElement[bool]:
    """Return the condition for lines about a member with this Discord id, or with this text in their name."""
    part = re.sub(r"([\\%_])", r"\\\1", member)
    named = aliased(Member)
    theirs = (col(named.server_id) == server_id, col(named.name).ilike(f"%{part}%"))
    found = (await db.exec(select(named.discord_id).where(*theirs).limit(FEW_PEOPLE + 1))).all()
    if len(found) <= FEW_PEOPLE:
        return col(Event.subject).in_([*found, member])
    # Lines about so many people are everywhere, so scanning line by line soon fills a page.
    same = exists().where(*theirs, col(named.discord_id) == Event.subject)
    return or_(col(Event.subject) == member, same)


async def _by_rule(db: AsyncSession, server_id: int, rule_id: int) -> ColumnElement[bool]:
    """Return the condition for lines about this rule, or about a role that it gave."""
    about, named = col(Event.rule_id) == rule_id, _RULE_IDS.contains([rule_id])
    if (await rollups.holders(db, [server_id])).get(rule_id, 0) > FEW_LINES:
        return or_(about, named)
    # The planner assumes that every rule is common and would scan line by line; for a rare rule, the whole log.
    hits = (
        select(Event.id)
        .where(Event.server_id == server_id, named)
        .cte("hits")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    found = (await db.exec(select(hits.c.id).limit(FEW_LINES + 1))).all()
    return or_(about, col(Event.id).in_(found)) if len(found) <= FEW_LINES else or_(about, named)


async def names_of(db: AsyncSession, server_id: int, events: Sequence[EventView]) -> KnownNames:
    """Return the names for the ids in these lines, in a fixed number of statements."""
    people = {one for event in events for one in (event.actor, event.subject) if one}
    rules = {event.rule_id for event in events if event.rule_id}
    rules |= {one for event in events for one in cast("list[int]", event.data.get("ruleIds") or [])}
    roles = {event.role_id for event in events if event.role_id}
    places = [place for event in events for place in _places(event.data)]
    return KnownNames(
        people=await _people(db, server_id, people),
        roles=await _named(db, _ROLES, server_id, sorted(roles)),
        rules={int(key): name for key, name in (await _named(db, _RULES, server_id, sorted(map(str, rules)))).items()},
        collections=await collections.names(db, places),
    )


def _places(data: dict[str, Any]) -> list[tuple[str, str]]:
    documents = [data[name] for name in ("rule", "before", "after") if isinstance(data.get(name), dict)]
    found = [
        (leaf.chain, leaf.contract)
        for document in documents
        if document.get("expression")
        for leaf in requirements(parse_stored(document["expression"]))
    ]
    return found + [(str(one.get("chain")), str(one.get("contract"))) for one in readings_of(data)]


async def _people(db: AsyncSession, server_id: int, people: set[str]) -> dict[str, str]:
    """Return people's names by Discord id: their name in the server or, without one, their name at Discord.

    A name has no characters that would turn the rest of a sentence around, and one that nobody can see is none.
    """
    result = await db.execute(
        """
        SELECT w.discord_id, COALESCE(m.name, u.global_name, split_part(u.username, '#', 1))
        FROM unnest(CAST(:people AS text[])) AS w (discord_id)
        LEFT JOIN member m ON m.server_id = :server AND m.discord_id = w.discord_id
        LEFT JOIN "user" u ON u.discord_id = w.discord_id
        """,
        {"people": sorted(people), "server": server_id},
    )
    return _legible(result.all())


def _legible(named: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    """Return the names by id on one line each, without those of which nothing is left."""
    shown = {str(one): one_line(str(name or "")) for one, name in named}
    return {one: name for one, name in shown.items() if name}


# The names of rules: the present name or, for a deleted rule, the last name in the log.
_RULES = """
    SELECT w.id, COALESCE(r.name, (
        SELECT COALESCE(e.data -> 'rule' ->> 'name', e.data -> 'after' ->> 'name') FROM event e
        WHERE e.server_id = :server AND e.rule_id = CAST(w.id AS integer) AND e.kind LIKE 'rule.%'
        AND (e.data ? 'rule' OR e.data ? 'after') ORDER BY e.id DESC LIMIT 1))
    FROM unnest(CAST(:ids AS text[])) AS w (id)
    LEFT JOIN rule r ON r.id = CAST(w.id AS integer) AND r.server_id = :server
"""
_ROLES = """
    SELECT w.id, COALESCE(
        (SELECT r.role_name FROM rule r WHERE r.server_id = :server AND r.role_id = w.id ORDER BY r.id DESC LIMIT 1),
        (SELECT COALESCE(NULLIF(e.data ->> 'roleName', ''), e.data -> 'rule' ->> 'roleName') FROM event e
         WHERE e.server_id = :server AND e.role_id = w.id
         AND COALESCE(NULLIF(e.data ->> 'roleName', ''), e.data -> 'rule' ->> 'roleName') IS NOT NULL
         ORDER BY e.id DESC LIMIT 1))
    FROM unnest(CAST(:ids AS text[])) AS w (id)
"""


async def _named(db: AsyncSession, statement: str, server_id: int, ids: Sequence[str]) -> dict[str, str]:
    if not ids:
        return {}
    result = await db.execute(statement, {"server": server_id, "ids": list(ids)})
    return _legible(result.all())


async def role_names(db: AsyncSession, server_id: int, role_ids: Sequence[str]) -> dict[str, str]:
    """Return roles' names from the newest rules for them, or from the log."""
    return await _named(db, _ROLES, server_id, role_ids)


async def _told_apart(db: AsyncSession, server_id: int, named: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return rules' names with notes: that a rule is deleted and, if rules share a name, when it was created (UTC)."""
    present = set(
        (await db.exec(select(Rule.id).where(Rule.server_id == server_id, col(Rule.deleted_at).is_(None)))).all()
    )
    counts = Counter(name for _id, name in named)
    alike = [rule_id for rule_id, name in named if counts[name] > 1]
    made = select(Event.rule_id, Event.at).where(
        Event.server_id == server_id, Event.kind == "rule.created", col(Event.rule_id).in_(alike)
    )
    # Translators: said of a rule, in brackets after its name.
    created, deleted = _("created {time}"), _("deleted")
    days = {rule_id: created.format(time=day_and_clock(at)) for rule_id, at in (await db.exec(made)).all()}
    return [
        (rule_id, name + _note([days.get(rule_id, ""), "" if rule_id in present else deleted]))
        for rule_id, name in named
    ]


def _note(parts: Sequence[str]) -> str:
    told = series(part for part in parts if part)
    return f" ({told})" if told else ""


_ACTORS = """
    SELECT DISTINCT actor FROM event
    WHERE server_id = :server AND kind = ANY(CAST(:kinds AS text[])) AND actor IS NOT NULL
    UNION SELECT a.discord_id FROM access a WHERE a.server_id = :server AND EXISTS (
        SELECT 1 FROM event e WHERE e.actor = a.discord_id AND e.server_id = :server)
"""


async def choices(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> LogChoices:
    """Return the choices of the log's filters. Raises ServerNotFound unless the actor runs the server."""
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    found: list[list[str]] = []
    for column in ("role_id", "rule_id"):
        # Jumps in the index from each value to the next, however many lines share a value.
        following = f"SELECT min({column}) FROM event WHERE server_id = :server AND {column}"
        rows = await db.execute(
            f"WITH RECURSIVE found (one) AS ({following} IS NOT NULL UNION ALL "
            f"SELECT ({following} > f.one) FROM found f WHERE f.one IS NOT NULL) "
            "SELECT one FROM found WHERE one IS NOT NULL",
            {"server": server_id},
        )
        found.append([str(one) for (one,) in rows.all()])
    roles, rules = found
    actors = await db.execute(_ACTORS, {"server": server_id, "kinds": _BY_ADMINS})
    people = [str(one) for (one,) in actors.all()]
    role_names = await _named(db, _ROLES, server_id, roles)
    rule_names = await _named(db, _RULES, server_id, rules)
    known = KnownNames(people=await _people(db, server_id, set(people)))
    named = [(int(one), name) for one, name in rule_names.items()]
    return LogChoices(
        tuple(sorted(role_names.items(), key=lambda one: one[1].casefold())),
        tuple(sorted(await _told_apart(db, server_id, named), key=lambda one: one[1].casefold())),
        tuple(sorted(((one, known.person(one)) for one in people), key=lambda one: one[1].casefold())),
    )
