"""The shards that this process runs: taken, renewed, handed over, and resumed where another process left them."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

from bot.gateway.shard_connection import OVER, RESUMABLE, Connection, ResumePoint
from locales import N_
from locales.stored_texts import storable
from models import transaction
from services.guilds.gateway import guild_snapshots, shards
from services.guilds.gateway.shards import BotProcess, GatewaySession, ShardBeat, ShardPart
from services.runtime.database_faults import NOT_DONE, first_line

log = logging.getLogger(f"holdfast.{__name__}")

ENDS_WITHIN = 3.0
"""Seconds that running event handlers have to finish before a shard is handed over."""


class OtherCount(Exception):
    """Another process divides the bot into more shards, `count`, so this process has to use that number too."""

    def __init__(self, count: int) -> None:
        super().__init__(str(count))
        self.count: int = count


class ShardKeeper:
    """The keeper of this process's shards and their connections.

    `busy` returns whether something about a shard is not in the database yet; `handling` returns the tasks that handle
    events.
    """

    def __init__(self, client: Any, process: BotProcess, part: ShardPart) -> None:
        self.client: Any = client
        self.process: BotProcess = process
        self.part: ShardPart = part
        self.count: int = 0
        self.connections: dict[int, Connection] = {}
        self.down: str | None = N_("The bot has just started.")
        """Why this process is not connected, for the other processes."""
        self.last: ShardBeat | None = None
        self.held_until: float = 0.0
        """Until when no other process may take these shards (loop time)."""
        self.busy: Callable[[int], bool] = lambda number: False
        self.handling: Callable[[], Collection[asyncio.Task[Any]]] = tuple
        self.handed_over: set[int] = set()
        """Shards that this process has left to others; events that came before that are still its own."""
        self._closing: bool = False
        self._turn: asyncio.Lock = asyncio.Lock()

    @property
    def stands_by(self) -> bool:
        """Whether this process holds no shard because others hold all of them."""
        return not self.connections and self.last is not None and self.last.free == 0

    @property
    def trouble_elsewhere(self) -> str | None:
        """The trouble outside this process, if any: another process is not connected, or some shards run nowhere."""
        if self.last is None:
            return None
        if self.last.free:
            return storable(
                "{free} of {count} shards of the bot run in no process.", free=self.last.free, count=self.count
            )
        return self.last.others_down

    async def speaks_for(self, db: Any, guild_id: int) -> bool:
        """Return whether the events of a guild are still this process's to store.

        After a process stood still for too long, another one has its shard, repeats the events that were not stored,
        and stores newer ones. A late event would replace these: a member who has come back would have left again.
        """
        number = shards.shard_of(guild_id, self.count or 1)
        return not self.count or number in self.handed_over or await shards.holds(db, self.process, self.count, number)

    async def run(self, count: int) -> None:
        """Run some of the bot's `count` shards until cancelled. Raises the error that ends a shard, and OtherCount."""
        self.count = count
        while not self._closing:
            await self.beat()
            tasks = [one.task for one in self.connections.values() if one.task is not None]
            if not tasks:
                await asyncio.sleep(shards.BEAT_SECONDS)
                continue
            done, _ = await asyncio.wait(tasks, timeout=shards.BEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def beat(self) -> None:
        """Renew the leases of held shards, take free shards, and hand over surplus ones."""
        async with self._turn:
            if not self._closing:
                await self._beat()

    async def _beat(self) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        self._settle()
        try:
            async with transaction() as db:
                held = frozenset(self.connections)
                found = await shards.beat(db, self.process, self.part, self.count, held, self.down)
                settled = [
                    (number, self._session(one.settled, number))
                    for number, one in self.connections.items()
                    if number in found.held and one.settled is not None
                ]
                await shards.keep(db, self.process, self.count, settled)
        except NOT_DONE as fault:
            log.warning("shards not renewed reason=%s", first_line(fault))
            return
        self.held_until, self.last = began + shards.LEASE_SECONDS, found
        for number in held - found.held:
            log.warning("shard taken over by another process shard=%s", number)
            await self.connections.pop(number).stop()
            self.drop_guilds(number)
        if found.count > self.count:
            raise OtherCount(found.count)
        for number, session in sorted(found.claimed.items()):
            await self._begin(number, session)
        if found.surplus:
            await self._hand_over()

    async def _begin(self, number: int, session: GatewaySession | None) -> None:
        at = await self._restored(number, session)
        connection = Connection(
            self.client, number, self._allowed, self.client.may_identify, self.client.unreadable.skip, at
        )  # fmt: skip
        log.info("shard taken shard=%s of=%s resumes=%s", number, self.count, at is not None)
        self.connections[number] = connection
        self.handed_over.discard(number)
        connection.start()

    async def _restored(self, number: int, session: GatewaySession | None) -> ResumePoint | None:
        """Load the shard's guilds into the library's cache and return where to resume; None if it has to identify."""
        state = self.client._connection
        if session is None or session.bot != self.client.token_digest or session.intents != state.intents.value:
            return None
        try:
            async with transaction() as db:
                stored = await guild_snapshots.of_shard(db, number, self.count)
        except NOT_DONE:
            return None
        if stored is None:
            return None
        self._restore(stored, session)
        return ResumePoint(session.id, session.sequence, session.url)

    def _restore(self, stored: Sequence[str], session: GatewaySession) -> None:
        state = self.client._connection
        if state.application_id is None and session.application_id:
            state.application_id = int(session.application_id)
        state._users[state.user.id] = state.user
        for snapshot in stored:
            data = json.loads(snapshot)
            data["unavailable"] = data["id"] in session.unavailable
            state._add_guild_from_data(data)

    async def _allowed(self) -> None:
        """Wait until no other process can have this one's shards, because it may have slept longer than its lease."""
        while asyncio.get_running_loop().time() > self.held_until:
            await asyncio.sleep(0.1)

    def _settle(self) -> None:
        """Advance each shard's settled position to the last one before which all events are handled."""
        now_handling = frozenset(self.handling())
        for number, one in self.connections.items():
            if one.settling is not None and all(task.done() for task in one.settling[1]):
                one.settled, one.settling = one.settling[0], None
            if one.settling is None and one.is_up and not self.busy(number) and (at := one.position()) is not None:
                one.settling = (at, now_handling)

    def _session(self, at: ResumePoint | None, number: int) -> GatewaySession:
        assert at is not None
        state = self.client._connection
        unavailable = [str(one.id) for one in self._guilds(number) if one.unavailable]
        return GatewaySession(
            id=at.session_id, sequence=at.sequence, url=at.url, intents=int(state.intents.value),
            bot=self.client.token_digest, application_id=str(state.application_id or ""),
            unavailable=tuple(unavailable),
        )  # fmt: skip

    def _guilds(self, number: int) -> list[Any]:
        return [guild for guild in self.client.guilds if shards.shard_of(guild.id, self.count) == number]

    def drop_guilds(self, number: int, keep: Collection[str] = ()) -> None:
        """Remove a shard's guilds from the library's cache, except those to keep."""
        state = self.client._connection
        for guild in self._guilds(number):
            if str(guild.id) not in keep:
                state._remove_guild(guild)

    async def _hand_over(self) -> None:
        """Leave one shard to a process with fewer shards, which resumes the session where this process ends it."""
        for number, one in sorted(self.connections.items(), reverse=True):
            if not one.is_up or one.settled is None or self.busy(number):
                continue
            await one.stop()
            del self.connections[number]
            self.handed_over.add(number)
            await self._handled()
            try:
                await self._store({number: one})
                async with transaction() as db:
                    await shards.release(db, self.process, self.count, [number])
            except NOT_DONE as fault:
                # Without a renewal the lease lapses, and the session is resumed from where it was last stored.
                log.warning("shard not released shard=%s reason=%s", number, first_line(fault))
            else:
                log.info("shard handed over shard=%s of=%s", number, self.count)
            self.drop_guilds(number)
            return

    async def _handled(self) -> bool:
        tasks = set(self.handling()) - {asyncio.current_task()}
        if not tasks:
            return True
        _, late = await asyncio.wait(tasks, timeout=ENDS_WITHIN)
        return not late

    async def _store(self, ended: dict[int, Connection]) -> None:
        """Store the last positions of these closed connections, for the process that resumes them."""
        ends = [(number, at) for number, one in ended.items() if (at := one.position()) is not None]
        async with transaction() as db:
            await shards.keep(
                db, self.process, self.count, [(number, self._session(at, number)) for number, at in ends]
            )

    async def disconnect(self, *, resumable: bool) -> frozenset[int]:
        """Close all connections, and return the shards whose state is in the database so far.

        With `resumable`, their sessions can be resumed. Handlers of received events may still run; call `leave` when
        they have ended.
        """
        self._closing = True
        with contextlib.suppress(TimeoutError):
            # Wait for a running beat, which may still take a shard.
            async with asyncio.timeout(ENDS_WITHIN), self._turn:
                pass
        whole = frozenset(number for number, one in self.connections.items() if one.is_up and not self.busy(number))
        code = RESUMABLE if resumable else OVER
        await asyncio.gather(*(one.stop(code) for one in self.connections.values()))
        return whole

    async def leave(self, whole: Collection[int], *, resumable: bool) -> None:
        """Leave the shards to other processes; if `resumable`, first store the last positions of the shards in `whole`.

        The other processes resume from the last stored position, or identify.
        """
        if not self.count:
            return
        try:
            if not resumable:
                async with transaction() as db:
                    await shards.forget(db, self.process, self.count, list(self.connections))
            else:
                await self._store({number: one for number, one in self.connections.items() if number in whole})
            async with transaction() as db:
                await shards.end(db, self.process)
        except NOT_DONE as fault:
            log.warning("shards not released reason=%s", first_line(fault))
        self.connections.clear()
        self.count = 0
