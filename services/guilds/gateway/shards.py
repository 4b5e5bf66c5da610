"""Which process runs which shard of the bot, and the sessions that another process can resume.

Each process renews its shards every few seconds. The next process with room takes a shard whose lease has lapsed, and
resumes the session from the state that the former process stored.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from models.db.session import AsyncSession
from services.core.queue import worker_names
from settings import SHARDS

BEAT_SECONDS, LEASE_SECONDS = 2.0, 8.0
"""Seconds between two renewals, and seconds after which another process may take a shard that was not renewed."""
KEY = 4_815_162_345
"""The advisory lock under which processes take shards."""
AUTO = "auto"
SHARD_OF = "mod(CAST(s.discord_id AS bigint) >> 22, CAST(:count AS bigint))"
"""SQL expression: the shard of a server `s` when there are `count`; see `shard_of`."""


def shard_of(guild_id: int | str, count: int) -> int:
    """Return the shard, out of `count`, to which Discord assigns a guild (docs/facts.md#discord-gateway)."""
    return (int(guild_id) >> 22) % count


@dataclass(frozen=True, slots=True)
class ShardPart:
    """The shards that BOT_SHARDS gives a process: all (`first` and `last` are None), or those from `first` to `last`.

    `count` is the number of all shards; None while Discord decides on it.
    """

    name: str
    count: int | None = None
    first: int | None = None
    last: int | None = None

    def shards(self, count: int) -> list[int]:
        """Return the numbers of the shards that the process may run, out of `count`."""
        return list(range(count) if self.first is None or self.last is None else range(self.first, self.last + 1))


def part(said: str) -> ShardPart:
    """Read BOT_SHARDS: `auto`, `32` or `0-7/32`. The settings accept nothing else."""
    if said == AUTO or (found := SHARDS.fullmatch(said)) is None:
        return ShardPart(AUTO)
    if found[1] is None:
        return ShardPart(said, int(found[3]))
    return ShardPart(said, int(found[3]), int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class GatewaySession:
    """A gateway session as it was last stored: everything up to `sequence` is in the database."""

    id: str
    sequence: int
    url: str
    intents: int
    bot: str
    """A digest of the token."""
    application_id: str
    unavailable: tuple[str, ...] = ()
    """Guilds that were unavailable."""


@dataclass(frozen=True, slots=True)
class ShardBeat:
    """The result of a renewal: the shards that the process holds, and the sessions of those that it has just claimed.

    `surplus` is how many shards it should leave to other processes, and `free` how many nobody holds. `count` is the
    largest number of shards that a process of the part uses. `others_down` is why another process is not connected.
    """

    held: frozenset[int]
    claimed: dict[int, GatewaySession | None]
    surplus: int
    count: int
    others_down: str | None
    free: int


@dataclass(frozen=True, slots=True)
class BotProcess:
    """A process as the database names it: its machine, its process id there, and a random part."""

    place: str
    pid: int
    own: str

    @property
    def name(self) -> str:
        """Return the name, by which other processes on the machine can see whether this one still runs."""
        return f"{self.place}:{self.pid}:{self.own}"


def this_process() -> BotProcess:
    """Return a name for this process."""
    return BotProcess(worker_names.machine(), os.getpid(), uuid4().hex[:12])


def is_gone(name: str, here: BotProcess) -> bool:
    """Return whether a process of this machine has ended; False for processes elsewhere, which cannot be checked."""
    place, _, rest = name.partition(":")
    pid = rest.partition(":")[0]
    return place == here.place and pid.isdigit() and not worker_names.is_running(int(pid))


def digest(token: str) -> str:
    """Return the digest that the database stores instead of the bot's token."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]


async def beat(
    db: AsyncSession, process: BotProcess, part: ShardPart, count: int, held: Collection[int], down: str | None
) -> ShardBeat:
    """Renew the shards that this process holds, and take free ones up to its share.

    `down` is why the process is not connected, None if it is. A shard in `held` that is missing from the result was
    taken by another process, because this one was silent for too long.
    """
    values: dict[str, Any] = {
        "me": process.name, "part": part.name, "count": count, "wanted": part.shards(count), "held": sorted(held),
        "lease": LEASE_SECONDS, "down": down,
    }  # fmt: skip
    await _alone(db)
    await db.execute(_APPEAR, values)
    others = await db.execute("SELECT DISTINCT holder FROM shard WHERE holder IS NOT NULL AND holder <> :me", values)
    if gone := [str(name) for (name,) in others.all() if is_gone(str(name), process)]:
        await db.execute("UPDATE shard SET holder = NULL WHERE holder = ANY(CAST(:gone AS text[]))", {"gone": gone})
        await db.execute("DELETE FROM bot_process WHERE name = ANY(CAST(:gone AS text[]))", {"gone": gone})
    await db.execute(_ROWS, values)
    renewed = {int(number) for (number,) in (await db.execute(_RENEW, values)).all()}
    processes, most, others_down = (await db.execute(_OTHERS, values)).one()
    share = -(-len(values["wanted"]) // max(1, int(processes)))
    rows = (await db.execute(_CLAIM, {**values, "room": max(0, share - len(renewed))})).all()
    claimed = {int(row[0]): _session(row) for row in rows}
    free = (await db.execute(_FREE, values)).scalar_one()
    return ShardBeat(
        held=frozenset(renewed | set(claimed)),
        claimed=claimed,
        surplus=max(0, len(renewed) - share),
        count=int(most),
        others_down=others_down,
        free=int(free),
    )


def _session(row: Sequence[Any]) -> GatewaySession | None:
    _, session_id, sequence, url, intents, bot, application_id, unavailable = row
    if not session_id or sequence is None or not url:
        return None
    return GatewaySession(
        session_id, int(sequence), url, int(intents), bot, application_id or "", tuple(unavailable or ())
    )


async def holds(db: AsyncSession, process: BotProcess, count: int, number: int) -> bool:
    """Return whether this process holds the shard; a lapsed lease counts until another process takes the shard."""
    question = "SELECT 1 FROM shard WHERE shards = :count AND id = :number AND holder = :me"
    (rows,) = await db.together((question, {"count": count, "number": number, "me": process.name}))
    return bool(rows)


async def keep(
    db: AsyncSession, process: BotProcess, count: int, sessions: Iterable[tuple[int, GatewaySession]]
) -> None:
    """Store the sessions of shards that this process holds."""
    await _alone(db)
    for number, one in sessions:
        # One round trip for all of them.
        db.later(
            "UPDATE shard SET session_id = :id, sequence = :sequence, url = :url, intents = :intents, bot = :bot, "
            "application_id = :application, unavailable = :unavailable WHERE shards = :count AND id = :number "
            "AND holder = :me",
            {
                "id": one.id, "sequence": one.sequence, "url": one.url, "intents": one.intents, "bot": one.bot,
                "application": one.application_id, "unavailable": list(one.unavailable), "count": count,
                "number": number, "me": process.name,
            },
        )  # fmt: skip


async def forget(db: AsyncSession, process: BotProcess, count: int, numbers: Collection[int]) -> None:
    """Delete the stored sessions of these shards, which Discord does not resume or no process should resume."""
    await _empty(db, "session_id", process, count, numbers)


async def release(db: AsyncSession, process: BotProcess, count: int, numbers: Collection[int]) -> None:
    """Leave these shards to other processes."""
    await _empty(db, "holder", process, count, numbers)


async def _empty(db: AsyncSession, column: str, process: BotProcess, count: int, numbers: Collection[int]) -> None:
    """Set a column of these shards to NULL where this process holds them."""
    await _alone(db)
    await db.execute(
        f"UPDATE shard SET {column} = NULL WHERE shards = :count AND holder = :me "
        "AND id = ANY(CAST(:numbers AS integer[]))",
        {"count": count, "me": process.name, "numbers": sorted(numbers)},
    )


async def end(db: AsyncSession, process: BotProcess) -> None:
    """Leave everything to other processes, because this one ends."""
    await _alone(db)
    for statement in ("UPDATE shard SET holder = NULL WHERE holder = :me", "DELETE FROM bot_process WHERE name = :me"):
        await db.execute(statement, {"me": process.name})


async def _alone(db: AsyncSession) -> None:
    """Let no other process change shards until the transaction ends; otherwise two processes could deadlock."""
    await db.together(("SELECT pg_advisory_xact_lock(:key)", {"key": KEY}))


async def in_use(db: AsyncSession, part: ShardPart) -> int:
    """Return the largest number of shards that any living process of this part uses; 0 if there is none."""
    found = await db.execute(
        "SELECT COALESCE(max(shards), 0) FROM bot_process WHERE part = :part "
        "AND seen_at > now() - make_interval(secs => :lease)",
        {"part": part.name, "lease": LEASE_SECONDS},
    )
    return int(found.scalar_one())


async def all_connected(db: AsyncSession) -> bool:
    """Return whether living processes hold every shard, and each of them is connected."""
    return bool((await db.execute(_ALL_CONNECTED)).scalar_one())


_APPEAR = """
    WITH old AS (DELETE FROM bot_process WHERE seen_at < now() - interval '1 minute' AND name <> :me)
    INSERT INTO bot_process (name, part, shards, seen_at, down) VALUES (:me, :part, :count, now(), :down)
    ON CONFLICT (name) DO UPDATE SET part = EXCLUDED.part, shards = EXCLUDED.shards, seen_at = EXCLUDED.seen_at,
        down = EXCLUDED.down
"""
_ROWS = """
    INSERT INTO shard (shards, id) SELECT :count, unnest(CAST(:wanted AS integer[])) ON CONFLICT DO NOTHING
"""
_RENEW = """
    UPDATE shard SET held_until = now() + make_interval(secs => :lease)
    WHERE shards = :count AND holder = :me AND id = ANY(CAST(:held AS integer[])) RETURNING id
"""
_OTHERS = """
    SELECT count(*) FILTER (WHERE part = :part), COALESCE(max(shards) FILTER (WHERE part = :part), :count),
    max(down) FILTER (WHERE name <> :me) FROM bot_process WHERE seen_at > now() - make_interval(secs => :lease)
"""
_CLAIM = """
    UPDATE shard SET holder = :me, held_until = now() + make_interval(secs => :lease) WHERE shards = :count
    AND id IN (SELECT id FROM shard WHERE shards = :count AND id = ANY(CAST(:wanted AS integer[]))
               AND NOT id = ANY(CAST(:held AS integer[]))
               AND (holder IS NULL OR holder = :me OR held_until < now()) ORDER BY id LIMIT :room)
    RETURNING id, session_id, sequence, url, intents, bot, application_id, unavailable
"""
_FREE = """
    SELECT count(*) FROM shard WHERE shards = :count AND (holder IS NULL OR held_until < now())
"""
_ALL_CONNECTED = """
    SELECT EXISTS (
        SELECT FROM shard s JOIN bot_process p ON p.name = s.holder WHERE s.held_until > now() AND p.down IS NULL
        GROUP BY s.shards HAVING count(*) = s.shards
    )
"""
