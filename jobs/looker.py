"""The look at due members: claim a batch, read what they hold, decide, write the decisions down."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from gateways import gateways
from jobs.lasting import AWAY, first_line
from models import reading, transaction
from services import cases, due, looks, work_health
from services.calls import wait
from services.due import Claim
from services.tasks import stop

log = logging.getLogger("holdfast.jobs.looker")

BATCH = 8_000
"""Members of one look, where balances tell everything: what a look costs however few they are is shared by so many."""
FEW = 500
"""Members of one look, where tokens have to be asked about one by one."""
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
    """One worker; as many as wanted may run, on as many machines."""

    def __init__(self, called: asyncio.Event, *, least: int = due.SWEPT, patience: float = 0.0) -> None:
        self.called: asyncio.Event = called
        self.least: int = least
        """Who is less urgent than this is left to others."""
        self.patience: float = patience
        """Seconds between a call and the look, in which somebody who has less to do may take up what is urgent."""
        self.batch: int = BATCH
        self.name: str = worker_name()
        self._counted = -COUNT_SECONDS

    async def run(self) -> None:
        """Look at due members for ever."""
        while True:
            try:
                await self._work()
            except AWAY as fault:
                log.warning("the database did not answer, the batch will be claimed again: %s", first_line(fault))
                await asyncio.sleep(IDLE_SECONDS)

    async def _work(self) -> None:
        # What the dead had claimed, and what the database left this worker with: neither waits for its lease to lapse.
        async with transaction() as db:
            await due.let_go_of(db, lambda worker: worker == self.name or is_dead(worker))
        while True:
            looked = await self.once()
            if looked < FEW:
                await wait(self.called, BREATH_SECONDS if looked else IDLE_SECONDS)
                await asyncio.sleep(self.patience)

    async def once(self) -> int:
        """One batch; tells how many members were in it."""
        # Each a statement that stands alone: a lease that is not used lapses.
        async with reading() as db:
            claimed = await due.claim(db, self.name, self.batch, self.least)
            claims = await cases.as_many_as_fit(db, self.name, claimed, FEW)
            if len(claimed) == self.batch:
                await self._count()
            self.batch = BATCH if len(claims) == len(claimed) else FEW
            if claims:
                renewing = asyncio.create_task(self._renew())
                try:
                    await self._look(partial(looks.look_at, db, gateways(), self.name), claims)
                finally:
                    await stop(renewing)
        return len(claims)

    async def _count(self) -> None:
        moment = asyncio.get_running_loop().time()
        if moment - self._counted >= COUNT_SECONDS:
            self._counted = moment
            async with transaction() as db:
                await due.count_anew(db)

    async def _look(self, look_at: Callable[[Sequence[Claim]], Awaitable[None]], claims: Sequence[Claim]) -> None:
        """Look at claimed members; a fault of our own is narrowed down to the member with whom it comes."""
        try:
            await look_at(claims)
        except AWAY:
            raise
        except Exception as fault:
            if len(claims) > 1:
                log.warning("a batch of %s members fails (%s): looking at less at once", len(claims), fault)
                half = len(claims) // 2
                await self._look(look_at, claims[:half])
                await self._look(look_at, claims[half:])
                return
            (claim,) = claims
            log.exception("the look at member %s of server %s fails", claim.discord_id, claim.server_id)
            async with transaction() as db:
                await due.later(db, self.name, claims, [work_health.own_fault(fault)])

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            async with transaction() as db:
                await due.renew(db, self.name)
