"""Find the names of rivals that moved the roles of our rules, in a server's audit log where the bot may read it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from gateways import Gateways
from gateways.discord.audit_log import A_PAGE, RoleEntry
from gateways.discord.types import MissingAccess, MissingPermissions
from gateways.transport.errors import ProviderError
from models import now
from models.db.session import AsyncSession
from services.accounts import forgotten_people
from services.guilds.role_safety import ADMINISTRATOR

VIEW_AUDIT_LOG = 1 << 7
"""docs/facts.md#discord-permissions."""
NO_PERMISSION, NOT_FOUND = "no_permission", "not_found"
"""Why a name stays unknown."""
LEASE = timedelta(seconds=60)
PAUSES = (timedelta(seconds=3), timedelta(seconds=30), timedelta(minutes=5))
"""The pauses between reads of a log that does not have the move yet."""
NO_ANSWER_PAUSE, REFUSED_PAUSE = timedelta(seconds=30), timedelta(minutes=10)
LOOK_BACK = timedelta(days=1)
"""The greatest age of a move that is still looked up, and of an entry that is stored although nothing else shows it."""
FORWARD, BACKWARD = timedelta(seconds=60), timedelta(seconds=5)
"""How much newer than the noticed move, or older than our change before it, an entry may be, because clocks differ."""
MOST_MOVES = 5_000
"""The most moves of a server that are looked up at a time."""
MOST_PAGES = 10
"""The most pages of a log that are read at a time; they contain our own changes too."""


@dataclass(frozen=True, slots=True)
class OpenMove:
    """A move whose maker is not known by name yet."""

    id: int
    discord_id: str
    role_id: str
    taken: bool
    at: datetime
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Search:
    """The moves of one server that its log may name; `allowed` is whether the bot has the permission, if known."""

    server_id: int
    guild_id: str
    allowed: bool | None
    moves: tuple[OpenMove, ...]


async def claim(db: AsyncSession) -> Search | None:
    """Return at most MOST_MOVES moves of one server that are due, claimed for this process for a minute, or None."""
    values = {
        "lease": LEASE, "bits": ADMINISTRATOR | VIEW_AUDIT_LOG, "old": LOOK_BACK, "denied": NO_PERMISSION,
        "most": MOST_MOVES,
    }  # fmt: skip
    rows = (await db.execute(_CLAIM, values)).all()
    if not rows:
        return None
    server_id, guild_id, allowed = rows[0][:3]
    moves = sorted((OpenMove(*row[3:]) for row in rows), key=lambda one: (one.at, one.id))
    return Search(int(server_id), str(guild_id), allowed, tuple(moves))


async def give_up(db: AsyncSession) -> None:
    """Stop waiting for the names of moves that are too old to be looked up."""
    await db.execute(
        "UPDATE rival_move SET next_at = NULL WHERE id IN ("
        "SELECT id FROM rival_move WHERE next_at < now() - :old ORDER BY id FOR UPDATE)",
        {"old": 2 * LOOK_BACK},
    )


_ALLOWED = "s.bot_permissions & :bits <> 0"
# Names that a missing permission hid are looked up once the bot has it. What another transaction has locked waits for
# the next turn: waiting for several of its rows could deadlock.
_CLAIM = f"""
    WITH turn AS (
        SELECT r.server_id, s.discord_id AS guild_id, {_ALLOWED} AS allowed
        FROM rival_move r JOIN server s ON s.id = r.server_id
        WHERE r.next_at <= now() AND r.at > now() - CAST(:old AS interval) AND s.bot_invited
        AND (r.reason IS DISTINCT FROM :denied OR {_ALLOWED}) ORDER BY r.next_at, r.id LIMIT 1
    )
    UPDATE rival_move r SET next_at = now() + CAST(:lease AS interval), reason = NULL FROM turn t
    WHERE r.id = ANY(ARRAY(
        SELECT m.id FROM rival_move m JOIN turn USING (server_id)
        WHERE m.next_at <= now() AND m.at > now() - CAST(:old AS interval)
        ORDER BY m.next_at, m.id LIMIT :most FOR UPDATE OF m SKIP LOCKED))
    RETURNING r.server_id, t.guild_id, t.allowed, r.id, r.discord_id, r.role_id, r.taken, r.at, r.since
"""


@dataclass(frozen=True, slots=True)
class RoleLog:
    """The result of reading the log: its entries, or why there are none. `denied`: the bot may not read it."""

    entries: tuple[RoleEntry, ...] = ()
    """The entries of others, without our own."""
    denied: bool = False
    fault: ProviderError | None = None


async def read(outside: Gateways, search: Search) -> RoleLog:
    """Read the log backwards until it names every move, or its entries are older than all of them can be."""
    if search.allowed is False:
        return RoleLog(denied=True)
    found: list[RoleEntry] = []
    before: str | None = None
    oldest = min(one.at for one in search.moves) - LOOK_BACK
    try:
        ours = (await outside.discord.me()).id
        for _ in range(MOST_PAGES):
            page = await outside.discord.role_entries(search.guild_id, before)
            found += [entry for entry in page if entry.actor_id != ours]
            complete = len(match(search.moves, found)) == len(search.moves)
            if complete or len(page) < A_PAGE or page[-1].at < oldest:
                break
            before = page[-1].id
    except (MissingPermissions, MissingAccess):
        return RoleLog(denied=True)
    except ProviderError as fault:
        return RoleLog(fault=fault)
    return RoleLog(tuple(found))


def match(moves: Sequence[OpenMove], entries: Sequence[RoleEntry]) -> dict[int, RoleEntry]:
    """Return, by move, the fitting entry that says who made it; each role change in an entry serves once.

    That is the newest entry that is not newer than the move: a move may be noticed late, but not before it happens.
    Only without one is it the nearest newer entry, because clocks differ.
    """
    waiting: dict[tuple[str, str, bool], list[RoleEntry]] = {}
    for entry in entries:
        for place in _places(entry):
            waiting.setdefault(place, []).append(entry)
    found: dict[int, RoleEntry] = {}
    for move in sorted(moves, key=lambda one: (one.at, one.id), reverse=True):
        candidates = waiting.get((move.discord_id, move.role_id, move.taken), [])
        after = move.since - BACKWARD if move.since else move.at - LOOK_BACK
        fitting = [one for one in candidates if after <= one.at <= move.at + FORWARD]
        if fitting:
            chosen = min(fitting, key=lambda one: (one.at > move.at, abs(one.at - move.at)))
            candidates.remove(chosen)
            found[move.id] = chosen
    return found


def _places(entry: RoleEntry) -> list[tuple[str, str, bool]]:
    """Return, for each role change in the entry, the member, the role and whether it was taken."""
    return [
        (entry.target_id, role_id, taken)
        for taken, roles in ((True, entry.removed), (False, entry.added))
        for role_id in sorted(roles)
    ]


async def keep(db: AsyncSession, search: Search, said: RoleLog) -> None:
    """Store the names, and schedule the next read of the log for moves that it does not name (yet)."""
    ids = [one.id for one in search.moves]
    named_before = {"server": search.server_id, "entries": [entry.id for entry in said.entries]}
    await db.execute(_LOCK, {"ids": ids, **named_before})
    if said.denied:
        values = {"ids": ids, "reason": NO_PERMISSION, "pause": REFUSED_PAUSE if search.allowed else timedelta()}
        await db.execute(_DENIED, values)
        return
    if said.fault is not None:
        wait = max(NO_ANSWER_PAUSE, timedelta(seconds=said.fault.retry_after or 0))
        await db.execute(_AGAIN, {"ids": ids, "pause": wait})
        return
    entries = await _without_forgotten(db, said.entries)
    found = match(search.moves, entries)
    rows = [{"id": move_id, **_columns(entry)} for move_id, entry in sorted(found.items())]
    others = [row for row in _rows(entries) if row["at"] > now() - LOOK_BACK]
    # An entry that was stored earlier, before its move was known, is the same move.
    await db.execute(_REPLACED, {"server": search.server_id, "rows": _json(rows)})
    named = {int(one) for (one,) in (await db.execute(_NAMED, {"rows": _json(rows)})).all()}
    await db.execute(_OTHERS, {"server": search.server_id, "rows": _json(others)})
    missing = {"ids": [one for one in ids if one not in named], "pauses": list(PAUSES)}
    await db.execute(_UNCONFIRMED, missing)
    await db.execute(_MISSING, missing | {"reason": NOT_FOUND})


async def postpone(db: AsyncSession, search: Search) -> None:
    """Look these moves up later, after an error of our own."""
    ids = [one.id for one in search.moves]
    await db.execute(_LOCK, {"ids": ids, "server": search.server_id, "entries": []})
    await db.execute(_AGAIN, {"ids": ids, "pause": REFUSED_PAUSE})


async def _without_forgotten(db: AsyncSession, entries: Sequence[RoleEntry]) -> list[RoleEntry]:
    """Return the entries with pseudonyms for people who deleted their data, and without those about their roles."""
    people = {who for entry in entries for who in (entry.actor_id, entry.target_id) if who is not None}
    hidden = await forgotten_people.pseudonyms(db, people)
    return [
        replace(entry, actor_id=hidden[entry.actor_id], actor_name=None) if entry.actor_id in hidden else entry
        for entry in entries
        if entry.target_id not in hidden
    ]


def _columns(entry: RoleEntry) -> dict[str, object]:
    return {
        "entry_id": entry.id, "at": entry.at, "actor_id": entry.actor_id, "actor_name": entry.actor_name,
        "actor_bot": entry.actor_bot,
    }  # fmt: skip


def _rows(entries: Sequence[RoleEntry]) -> list[dict[str, Any]]:
    """Return one row for each role change in these entries."""
    return [
        {"discord_id": who, "role_id": role_id, "taken": taken, **_columns(entry)}
        for entry in entries
        for who, role_id, taken in _places(entry)
    ]


def _json(rows: Sequence[Mapping[str, object]]) -> str:
    return json.dumps(rows, default=str)


# Before several statements write some of them each: a reconcile counts moves in the same order.
_LOCK = """
    SELECT 1 FROM rival_move
    WHERE id = ANY(CAST(:ids AS bigint[])) OR server_id = :server AND entry_id = ANY(CAST(:entries AS text[]))
    ORDER BY id FOR UPDATE
"""
_DENIED = """
    UPDATE rival_move SET naming = 'unknown', reason = :reason, next_at = now() + CAST(:pause AS interval)
    WHERE id = ANY(CAST(:ids AS bigint[]))
"""
_AGAIN = "UPDATE rival_move SET next_at = now() + CAST(:pause AS interval) WHERE id = ANY(CAST(:ids AS bigint[]))"
_SAID = """jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (
    id bigint, entry_id text, at timestamptz, actor_id text, actor_name text, actor_bot boolean)"""
_REPLACED = f"""
    DELETE FROM rival_move r USING {_SAID}, rival_move o
    WHERE o.id = n.id AND r.server_id = :server AND r.entry_id = n.entry_id AND r.role_id = o.role_id AND r.id <> o.id
    AND NOT r.against
"""
_NAMED = f"""
    UPDATE rival_move r SET naming = 'named', reason = NULL, next_at = NULL, entry_id = n.entry_id, at = n.at,
        actor_id = n.actor_id, actor_name = n.actor_name, actor_bot = n.actor_bot
    FROM {_SAID} WHERE r.id = n.id AND NOT EXISTS (SELECT 1 FROM rival_move o WHERE o.server_id = r.server_id
        AND o.entry_id = n.entry_id AND o.role_id = r.role_id AND o.id <> r.id)
    RETURNING r.id
"""
_OTHERS = """
    INSERT INTO rival_move (server_id, discord_id, role_id, taken, at, against, naming, entry_id, actor_id, actor_name,
                            actor_bot, attempts)
    SELECT :server, n.discord_id, n.role_id, n.taken, n.at, false, 'named', n.entry_id, n.actor_id, n.actor_name,
           n.actor_bot, 0
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (discord_id text, role_id text, taken boolean, entry_id text,
        at timestamptz, actor_id text, actor_name text, actor_bot boolean)
    WHERE EXISTS (SELECT 1 FROM rule r WHERE r.server_id = :server AND r.role_id = n.role_id AND r.state = 'active'
        AND r.deleted_at IS NULL)
    ORDER BY n.entry_id ON CONFLICT DO NOTHING
"""
# A move that only a gateway event showed, and that a readable log does not have, did not happen.
_UNCONFIRMED = """
    DELETE FROM rival_move WHERE id = ANY(CAST(:ids AS bigint[])) AND NOT against
    AND attempts >= cardinality(CAST(:pauses AS interval[]))
"""
_MISSING = """
    UPDATE rival_move SET attempts = attempts + 1,
        next_at = now() + (CAST(:pauses AS interval[]))[attempts + 1],
        naming = CASE WHEN attempts >= cardinality(CAST(:pauses AS interval[])) THEN 'unknown' ELSE 'open' END,
        reason = CASE WHEN attempts >= cardinality(CAST(:pauses AS interval[])) THEN CAST(:reason AS text) END
    WHERE id = ANY(CAST(:ids AS bigint[]))
"""
