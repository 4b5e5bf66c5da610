"""The look at due members: claim a batch, read what they hold, decide, write the decisions down."""

import asyncio
import logging
import os
import secrets
import socket
from collections import Counter

from sqlalchemy.exc import DBAPIError

from gateways import gateways
from models import now, transaction
from services import cases, decisions, delegations, due, ledger, request_ids
from services.calls import wait
from services.tasks import stop

log = logging.getLogger("holdfast.jobs.looker")

BATCH = 500
IDLE_SECONDS = 1.0
"""How often somebody whose pause has ended is noticed without a call."""
RENEW_SECONDS = 20


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

    def __init__(self, called: asyncio.Event, batch: int = BATCH) -> None:
        self.called: asyncio.Event = called
        self.batch: int = batch
        self.name: str = worker_name()

    async def run(self) -> None:
        """Look at due members for ever."""
        async with transaction() as db:
            await due.let_go_of(db, is_dead)
        while True:
            try:
                looked = await self.once()
            except DBAPIError as fault:
                log.warning("the database did not answer, the batch will be claimed again: %s", fault.orig)
                await asyncio.sleep(IDLE_SECONDS)
                continue
            if looked == 0:
                await wait(self.called, IDLE_SECONDS)

    async def once(self) -> int:
        """One batch; tells how many members were in it."""
        async with transaction() as db:
            claims = await due.claim(db, self.name, self.batch)
            if not claims:
                return 0
            stale = await cases.delegations_to_read(db, claims)
        renewing = asyncio.create_task(self._renew())
        try:
            fetched = await delegations.read(gateways(), stale)
            async with transaction() as db:
                await delegations.remember(db, fetched)
                batch = await cases.load(db, claims)
                wanted = await decisions.questions(db, batch)
            done = await decisions.look(gateways(), batch, wanted, now())
        finally:
            await stop(renewing)
        async with transaction() as db:
            moves = await ledger.settle(db, self.name, done)
        for request, members in Counter(claim.request_id for claim in claims if claim.request_id).items():
            with request_ids.under(request):
                log.info("looked at %s of the members whom it made due; %s roles of the batch move", members, moves)
        return len(claims)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            async with transaction() as db:
                await due.renew(db, self.name)
