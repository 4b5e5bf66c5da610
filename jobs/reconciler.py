"""The reconciler's worker, which claims a batch of queued members, reads, decides, and writes the decisions."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from math import inf
from typing import TypeVar

from gateways import gateways
from models import reading, transaction
from services.core import queue
from services.core.queue import Claim
from services.core.queue.worker_names import is_dead, worker_name
from services.engine import cases, reconcile
from services.engine.reconcile import BatchPart
from services.health import backlog
from services.runtime import garbage_collection
from services.runtime.database_faults import is_the_databases
from services.runtime.postgres_listen import wait
from services.runtime.retries import database_errors_logged, doubled, repeat_forever
from services.runtime.task_cancellation import stop

log = logging.getLogger(f"holdfast.{__name__}")

T = TypeVar("T")

BATCH = 8_000
"""Members in one claim; they share the fixed cost of a reconcile."""
FEW = 500
"""Members of one server in the first of its parts that read tokens one by one."""
MOST_OF_A_SERVER = 8 * FEW
"""The most members of one server in such a part, after its earlier parts were quick."""
LANE_SECONDS = 2.0
"""The seconds that such a part should take. Up to half of that is quick; after a longer part, the next is smaller."""
MOST_IN_FLIGHT = 2 * BATCH
"""Members reconciled from balances by one worker at a time, which bounds its memory."""
MOST_STALLED = BATCH
"""The most members that wait for one silent chain. They do not count against MOST_IN_FLIGHT."""
STALLED_SECONDS = 5.0
"""Seconds until members that need a silent chain are claimed again."""
LOOKED_AFTER_SECONDS = 0.5
"""Seconds between checks, while MOST_IN_FLIGHT is reached, whether the chains that members wait for are silent."""
MOST_IN_LANES = 2 * BATCH
"""The most members in lanes or waiting for one; half of this is for parts of FEW. They do not count against
MOST_IN_FLIGHT."""
LANES = 4
"""Servers that one worker reads token by token at a time, in addition to the reads of balances."""
MOST_WAITING = 200
"""Servers that may wait for a lane."""
PUT_OFF_SECONDS = 30.0
"""Seconds until the members of a server without a lane are claimed again."""
PACE_SECONDS = 0.25
"""Seconds that the next claim waits for the current parts, so that new members are reconciled in one batch."""
BREATH_SECONDS = 0.05
"""Pause in seconds after fewer than FEW members, in which the writer gives their roles before the next claim."""
IDLE_SECONDS = 1.0
"""Seconds between claims without a notification, which find members whose pause has ended."""
LONGEST_REST_SECONDS = 60.0
"""The longest pause of members whose part ends with a database error each time; the first one is IDLE_SECONDS."""
MOST_PIECES = 8
"""The most pieces into which a part is divided after database errors."""
RENEW_SECONDS = 20
COUNT_SECONDS = 60.0
"""Seconds between updates of the queue's row estimate, for the database's query planner, while batches are full."""


class Reconciler:
    """One worker; any number may run, on any number of machines.

    A batch is split into parts, each reconciled by its own task while the worker claims more, so that a slow chain or
    server delays no other. Servers that are read token by token take turns in a few lanes.
    """

    def __init__(self, called: asyncio.Event, *, least: int = queue.SWEPT, patience: float = 0.0) -> None:
        self.called: asyncio.Event = called
        self.least: int = least
        """Members with a lower urgency are left to other workers."""
        self.patience: float = patience
        """Seconds to wait after a notification, so that a less busy worker may claim the urgent members first."""
        self.batch: int = BATCH
        self.name: str = worker_name()
        self._counted = -COUNT_SECONDS
        self._lanes = asyncio.Semaphore(LANES)
        self._in_lanes: set[int] = set()
        """Servers that are in a lane or waiting for one."""
        self._sizes: dict[int, int] = {}
        """Members in the next part of a server whose full parts were quick; FEW for any other server."""
        self._running: dict[asyncio.Task[None], BatchPart] = {}
        """Running tasks that read balances."""
        self._slow: dict[asyncio.Task[None], int] = {}
        """Tasks in a lane or waiting for one, with their number of members."""
        self._faults: dict[str, tuple[int, float]] = {}
        """Members, by the keys of their claims, whose last parts ended with database errors: how many in a row, and
        when the last one did (loop time)."""

    async def run(self) -> None:
        """Reconcile queued members until cancelled."""
        await repeat_forever(self._work, log, "the batch will be claimed again", IDLE_SECONDS)

    async def _work(self) -> None:
        # Release the claims of dead workers and our own from before a failure, without waiting for their leases.
        async with transaction() as db:
            await queue.release_leases(db, lambda worker: worker == self.name or is_dead(worker))
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                claimed = await self._turn()
                _raise_faults([renewing])
                if claimed < FEW:
                    await wait(self.called, BREATH_SECONDS if claimed else IDLE_SECONDS)
                    await asyncio.sleep(self.patience)
        finally:
            await self._stop(renewing)

    async def _turn(self) -> int:
        """Claim, start the parts, and wait a moment; return the number of members claimed."""
        claimed, parts = await self._begin()
        # The next claim does not wait for lanes.
        quick = [task for task, part in parts if part.server_id is None]
        if quick:
            await asyncio.wait(quick, timeout=PACE_SECONDS)
        while self._members >= MOST_IN_FLIGHT:
            await asyncio.wait(self._running, timeout=LOOKED_AFTER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            self._forget_ended()
        self._forget_ended()
        return claimed

    async def once(self) -> int:
        """Claim one batch and reconcile it until it is settled; return the number of its members."""
        renewing = asyncio.create_task(self._renew())
        try:
            _, parts = await self._begin()
            members = sum(map(len, self._running.values())) + sum(self._slow.values())
            await asyncio.gather(*(task for task, _ in parts))
            self._forget_ended()
        finally:
            await self._stop(renewing)
        return members

    async def _stop(self, renewing: asyncio.Task[None]) -> None:
        running = [*self._running, *self._slow]
        self._running, self._slow = {}, {}
        await stop(renewing, *running)
        self._in_lanes.clear()

    @property
    def _members(self) -> int:
        """The number of members being reconciled from balances, without those that wait for a silent chain."""
        return sum(len(part) for part in self._running.values() if not _silent(part))

    def _stalled(self, chains: Collection[str]) -> int:
        """Return the number of members that wait for these chains."""
        return sum(len(part) for part in self._running.values() if not part.chains.isdisjoint(chains))

    def _forget_ended(self) -> None:
        """Forget ended tasks, and raise the error of the first failed one."""
        ended = [task for task in (*self._running, *self._slow) if task.done()]
        for task in ended:
            self._running.pop(task, None)
            self._slow.pop(task, None)
        _raise_faults(ended)

    async def _begin(self) -> tuple[int, list[tuple[asyncio.Task[None], BatchPart]]]:
        """Claim a batch and start its parts; return the number of members claimed, and the tasks."""
        async with reading() as db:
            # Each statement commits separately; an unused lease simply lapses.
            room = min(self.batch, max(1, MOST_IN_FLIGHT - self._members))
            claimed = await queue.claim(db, self.name, room, self.least, without=self._in_lanes)
        if len(claimed) == self.batch:
            await self._count()
        pieces = [piece for part in await self._parts(claimed) for piece in self._divided(part)]
        begun = [(task, piece) for piece in pieces if (task := await self._start(piece)) is not None]
        return len(claimed), begun

    async def _parts(self, claims: Sequence[Claim]) -> list[BatchPart]:
        """Return the parts of these claims.

        After a database error, read each half of them, until only the members are left whom nobody can read.
        """
        if not claims:
            return []
        with database_errors_logged(log, "fewer members will be read together"):
            async with reading() as db:
                fitting = await cases.keep_what_fits(db, self.name, claims) if len(claims) > FEW else claims
                return await self._careful(fitting, partial(reconcile.parts, db, gateways(), fitting)) or []
        if len(claims) == 1:
            await self._put_off(claims)
            return []
        async with transaction() as db:
            await db.now()  # if the database is away, the worker begins again
        half = len(claims) // 2
        return [*await self._parts(claims[:half]), *await self._parts(claims[half:])]

    def _divided(self, part: BatchPart) -> list[BatchPart]:
        """Divide a part that balances answer, if it has to be smaller after database errors."""
        size = self._most(part)
        return [part] if part.server_id is not None or size == len(part) else part.divided(size)

    async def _start(self, part: BatchPart) -> asyncio.Task[None] | None:
        """Start a part, or return its claims to the queue if there is no room."""
        server_id = part.server_id
        if server_id is None:
            silent = _silent(part)
            if silent and self._stalled(silent) + len(part) > MOST_STALLED:
                async with transaction() as db:
                    await queue.postpone(db, self.name, part.claims, STALLED_SECONDS)
                return None
            task = asyncio.create_task(self._look(part))
            self._running[task] = part
            return task
        waiting, size = sum(self._slow.values()), self._sizes.get(server_id, FEW)
        members = min(self._most(part), size if waiting + size <= MOST_IN_LANES // 2 else FEW)
        full = len(self._in_lanes) >= MOST_WAITING or waiting + members > MOST_IN_LANES
        if full or server_id in self._in_lanes:
            async with transaction() as db:
                await queue.postpone(db, self.name, part.claims, PUT_OFF_SECONDS)
            return None
        if len(part.claims) > members:
            async with transaction() as db:
                await queue.release(db, self.name, part.claims[members:])
            part = part.first(members)
        self._in_lanes.add(server_id)
        task = asyncio.create_task(self._look(part))
        self._slow[task] = members
        return task

    async def _look(self, part: BatchPart) -> None:
        """Reconcile a part when its turn comes, and set the size of the server's next part."""
        if part.server_id is None:
            await self._reconcile(part)
            return
        clock = asyncio.get_running_loop().time
        try:
            async with self._lanes:
                began = clock()
                answered = await self._reconcile(part)
                self._resize(part.server_id, len(part), clock() - began if answered else inf)
        finally:
            self._in_lanes.discard(part.server_id)
            # While the server was in a lane, its other members could not be claimed, despite any notification.
            self.called.set()

    async def _reconcile(self, part: BatchPart) -> bool:
        """Reconcile a part; return whether every member was answered.

        After a database error, such as a deadlock, only this part is claimed again, and the others finish.
        """
        undisturbed = garbage_collection.undisturbed() if len(part) > FEW else nullcontext()
        with database_errors_logged(log, "the members will be claimed again"), undisturbed:
            work = partial(reconcile.reconcile_part, gateways(), self.name, part)
            answered = bool(await self._careful(part.claims, work))
            for claim in part.claims:
                self._faults.pop(claim.key, None)
            return answered
        await self._put_off(part.claims)
        return False

    async def _put_off(self, claims: Sequence[Claim]) -> None:
        """Let claims rest after a database error: otherwise their leases would be renewed with the worker's others.

        If the database is away, this fails too, and the worker begins again with all of its claims.
        """
        async with transaction() as db:
            await queue.postpone(db, self.name, claims, self._rest(claims))

    def _rest(self, claims: Sequence[Claim]) -> float:
        """Count a database error of a part with these claims; return the seconds until they are claimed again.

        What has failed several times mostly fails again, for instance at a statement's time limit, and costs the
        database that much each time.
        """
        now = asyncio.get_running_loop().time()
        times = self._failed(claims)
        self._faults |= {claim.key: (times + 1, now) for claim in claims}
        return doubled(IDLE_SECONDS, times, LONGEST_REST_SECONDS)

    def _failed(self, claims: Sequence[Claim]) -> int:
        """Return how many parts in a row ended with a database error for one of these members."""
        now = asyncio.get_running_loop().time()
        # Others may have reconciled these members since.
        self._faults = {key: last for key, last in self._faults.items() if now - last[1] < 2 * LONGEST_REST_SECONDS}
        return max((self._faults[claim.key][0] for claim in claims if claim.key in self._faults), default=0)

    def _most(self, part: BatchPart) -> int:
        """Return how many members may be reconciled together: fewer, the more often they failed.

        An error that always comes can be about a few of them, as where the disk cannot read a page of the database, or
        about their number, at a statement's time limit.
        """
        times = self._failed(part.claims)
        return len(part) if times < 2 else -(-len(part) // min(2 ** (times - 1), MOST_PIECES))

    def _resize(self, server_id: int, members: int, seconds: float) -> None:
        """Set the size of the server's next part according to the time that this one took.

        A part that was not full changes nothing, because it was the last one of a sweep. A part with unanswered members
        (infinite seconds) changes nothing either.
        """
        size = self._sizes.pop(server_id, FEW)
        if members < size or seconds == inf:
            return
        if seconds > LANE_SECONDS:
            size //= 2
        elif seconds <= LANE_SECONDS / 2:
            size = min(2 * size, MOST_OF_A_SERVER)
        if size > FEW:
            self._sizes[server_id] = size

    async def _careful(self, claims: Sequence[Claim], doing: Callable[[], Awaitable[T]]) -> T | None:
        """Run `doing` for claims. After an error of our own, halve the batch until only the member at fault is left."""
        try:
            return await doing()
        except Exception as fault:
            if is_the_databases(fault):
                raise
            if len(claims) == 1:
                (claim,) = claims
                log.exception("failed to reconcile member=%s server=%s", claim.discord_id, claim.server_id)
                async with transaction() as db:
                    await queue.retry_later(db, self.name, claims, [backlog.own_fault(fault)])
                return None
            # Only the error's type is logged, because its text may quote a member's wallet.
            log.warning("batch failed, splitting it members=%s reason=%s", len(claims), type(fault).__name__)
        # Mostly a server's rules are at fault, and claims go round the servers.
        claims = sorted(claims, key=lambda claim: claim.server_id)
        half = len(claims) // 2
        for some in (claims[:half], claims[half:]):
            await self._careful(some, partial(reconcile.reconcile_claims, gateways(), self.name, some))
        return None

    async def _count(self) -> None:
        moment = asyncio.get_running_loop().time()
        if moment - self._counted >= COUNT_SECONDS:
            self._counted = moment
            async with transaction() as db:
                await queue.refresh_statistics(db)

    async def _renew(self) -> None:
        """Renew the claims until cancelled, also those of a batch that is only being read or split."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            async with transaction() as db:
                await queue.renew(db, self.name)


def _silent(part: BatchPart) -> list[str]:
    """Return those chains of a part whose nodes have been silent for a while."""
    return [chain for chain in part.chains if gateways().chains.is_silent(chain)]


def _raise_faults(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Raise the error of the first failed task; running tasks are left alone."""
    # Each error is read, since asyncio logs those that nobody has read: a lost database fails many tasks at once.
    faults = [task.exception() for task in tasks if task.done() and not task.cancelled()]
    for fault in faults:
        if fault is not None:
            raise fault
