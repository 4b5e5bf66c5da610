"""The look at due members: claim a batch, read what they hold, decide, write the decisions down."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TypeVar

from gateways import gateways
from jobs.restart import outlasting
from models import reading, transaction
from services.core import queue
from services.core.queue import Claim
from services.engine import cases, reconcile
from services.engine.reconcile import BatchPart
from services.health import backlog
from services.runtime import garbage_collection
from services.runtime.database_faults import is_the_databases
from services.runtime.listen import wait
from services.runtime.tasks import stop

log = logging.getLogger("holdfast.jobs.reconciler")

T = TypeVar("T")

BATCH = 8_000
"""Members of one claim: what a look costs however few they are is shared by so many."""
FEW = 500
"""Members of one server in a look where tokens have to be asked about one by one."""
MOST_IN_FLIGHT = 2 * BATCH
"""Members whom one worker looks at by balances, which bounds its memory."""
MOST_STALLED = BATCH
"""Members who wait for one silent chain; they are no reason to claim fewer of the others, and no more join them."""
STALLED_SECONDS = 5.0
"""After how long members who would wait for a silent chain are claimed again."""
LOOKED_AFTER_SECONDS = 0.5
"""How often it is looked whether the chains are silent that so many members wait for."""
MOST_IN_LANES = BATCH
"""Members in the lanes or waiting for one; they are no reason to claim fewer of the others."""
LANES = 4
"""Servers that one worker reads token by token at a time; balances are read beside them."""
MOST_WAITING = 200
"""Servers that wait for a lane."""
PUT_OFF_SECONDS = 30.0
"""After how long the members of servers for which there is no room are claimed again."""
PACE_SECONDS = 0.25
"""How long the next claim waits for the looks of the last one: marks that come meanwhile are looked at together."""
BREATH_SECONDS = 0.05
"""After fewer than FEW members nobody else waits: what they are to be given comes before a look for more."""
IDLE_SECONDS = 1.0
"""How often somebody whose pause has ended is noticed without a call."""
RENEW_SECONDS = 20
COUNT_SECONDS = 60.0
"""How often, while batches are full, the database counts anew how many are due; it plans by that."""


def worker_name() -> str:
    """A name that no other process has, also after a restart with the same number."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def is_dead(worker: str) -> bool:
    """Whether the worker was a process of this machine that is no longer there."""
    host, _, rest = worker.rpartition(":")[0].rpartition(":")
    if host != socket.gethostname() or not rest.isdigit():
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return int(rest) == os.getpid()


class Looker:
    """One worker; as many as wanted may run, on as many machines.

    What it claims is looked at in parts, each by a task of its own, and the worker goes on claiming: a chain or a
    server that is slow keeps nobody else waiting. Servers that are read token by token take turns at a few lanes.
    """

    def __init__(self, called: asyncio.Event, *, least: int = queue.SWEPT, patience: float = 0.0) -> None:
        self.called: asyncio.Event = called
        self.least: int = least
        """Who is less urgent than this is left to others."""
        self.patience: float = patience
        """Seconds between a call and the look, in which somebody who has less to do may take up what is urgent."""
        self.batch: int = BATCH
        self.name: str = worker_name()
        self._counted = -COUNT_SECONDS
        self._lanes = asyncio.Semaphore(LANES)
        self._in_lanes: set[int] = set()
        """The servers that are in a lane or wait for one."""
        self._running: dict[asyncio.Task[None], BatchPart] = {}
        """The looks by balances that are under way."""
        self._slow: dict[asyncio.Task[None], int] = {}
        """Those in a lane or waiting for one, with how many members they have."""

    async def run(self) -> None:
        """Look at due members for ever."""
        while True:
            with outlasting(log, "the batch will be claimed again"):
                await self._work()
            await asyncio.sleep(IDLE_SECONDS)

    async def _work(self) -> None:
        # What the dead had claimed, and what the database left this worker with: neither waits for its lease to lapse.
        async with transaction() as db:
            await queue.let_go_of(db, lambda worker: worker == self.name or is_dead(worker))
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
        """Claim, begin to look, and wait for a moment; return how many members were claimed."""
        claimed, parts = await self._begin()
        # Each by balances: the lanes' looks are waited for by nobody.
        quick = [task for task, part in parts if part.server_id is None]
        if quick:
            await asyncio.wait(quick, timeout=PACE_SECONDS)
        while self._members >= MOST_IN_FLIGHT:
            await asyncio.wait(self._running, timeout=LOOKED_AFTER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            self._forget_ended()
        self._forget_ended()
        return claimed

    async def once(self) -> int:
        """Claim one batch and look at it until it is settled; return how many members were in it."""
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
        """How many members are looked at by balances, without those who wait for a chain that is silent."""
        return sum(len(part) for part in self._running.values() if not _silent(part))

    def _stalled(self, chains: Collection[str]) -> int:
        """How many members wait for these chains."""
        return sum(len(part) for part in self._running.values() if not part.chains.isdisjoint(chains))

    def _forget_ended(self) -> None:
        """Forget the looks that have ended, and raise what one of them failed with."""
        ended = [task for task in (*self._running, *self._slow) if task.done()]
        for task in ended:
            self._running.pop(task, None)
            self._slow.pop(task, None)
        _raise_faults(ended)

    async def _begin(self) -> tuple[int, list[tuple[asyncio.Task[None], BatchPart]]]:
        """Claim a batch and begin to look at its parts; return how many were claimed, and the looks."""
        async with reading() as db:
            # Each a statement that stands alone: a lease that is not used lapses.
            room = min(self.batch, max(1, MOST_IN_FLIGHT - self._members))
            claimed = await queue.claim(db, self.name, room, self.least, without=self._in_lanes)
            claims = await cases.as_many_as_fit(db, self.name, claimed) if len(claimed) > FEW else claimed
            if len(claimed) == self.batch:
                await self._count()
            parts = await self._careful(claims, partial(reconcile.parts, db, gateways(), claims)) if claims else None
        begun = [(task, part) for part in parts or () if (task := await self._start(part)) is not None]
        return len(claimed), begun

    async def _start(self, part: BatchPart) -> asyncio.Task[None] | None:
        """Begin to look at a part, or give back whom there is no room for."""
        server_id = part.server_id
        if server_id is None:
            silent = _silent(part)
            if silent and self._stalled(silent) + len(part) > MOST_STALLED:
                async with transaction() as db:
                    await queue.put_off(db, self.name, part.claims, STALLED_SECONDS)
                return None
            task = asyncio.create_task(self._look(part))
            self._running[task] = part
            return task
        members = min(FEW, len(part.claims))
        full = len(self._in_lanes) >= MOST_WAITING or sum(self._slow.values()) + members > MOST_IN_LANES
        if full or server_id in self._in_lanes:
            async with transaction() as db:
                await queue.put_off(db, self.name, part.claims, PUT_OFF_SECONDS)
            return None
        if len(part.claims) > members:
            async with transaction() as db:
                await queue.let_go(db, self.name, part.claims[members:])
            part = part.first(members)
        self._in_lanes.add(server_id)
        task = asyncio.create_task(self._look(part))
        self._slow[task] = members
        return task

    async def _look(self, part: BatchPart) -> None:
        """Look at a part when its turn has come."""
        if part.server_id is None:
            with garbage_collection.undisturbed() if len(part.claims) > FEW else nullcontext():
                await self._careful(part.claims, partial(reconcile.look, gateways(), self.name, part))
            return
        try:
            async with self._lanes:
                await self._careful(part.claims, partial(reconcile.look, gateways(), self.name, part))
        finally:
            self._in_lanes.discard(part.server_id)

    async def _careful(self, claims: Sequence[Claim], doing: Callable[[], Awaitable[T]]) -> T | None:
        """Do something for claims; a fault of our own is narrowed down to the member with whom it comes."""
        try:
            return await doing()
        except Exception as fault:
            if is_the_databases(fault):
                raise
            if len(claims) == 1:
                (claim,) = claims
                log.exception("the look at member %s of server %s fails", claim.discord_id, claim.server_id)
                async with transaction() as db:
                    await queue.later(db, self.name, claims, [backlog.own_fault(fault)])
                return None
            log.warning("a batch of %s members fails (%s): looking at less at once", len(claims), fault)
        half = len(claims) // 2
        for some in (claims[:half], claims[half:]):
            await self._careful(some, partial(reconcile.look_at, gateways(), self.name, some))
        return None

    async def _count(self) -> None:
        moment = asyncio.get_running_loop().time()
        if moment - self._counted >= COUNT_SECONDS:
            self._counted = moment
            async with transaction() as db:
                await queue.count_anew(db)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            if self._running or self._slow:
                async with transaction() as db:
                    await queue.renew(db, self.name)


def _silent(part: BatchPart) -> list[str]:
    """The chains that a part waits for and whose nodes have not answered anybody for a while."""
    return [chain for chain in part.chains if gateways().chains.is_silent(chain)]


def _raise_faults(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Raise what one of these failed with; those that go on are left alone."""
    for task in tasks:
        if task.done() and not task.cancelled() and (fault := task.exception()) is not None:
            raise fault
