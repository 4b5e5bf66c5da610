"""The role writer: the one process at a time that changes roles, and when it has to ask Discord before a change.

Each change is carried out by `services/roles/outbox.py`.
"""

import asyncio
import logging
from collections import Counter
from datetime import datetime

from gateways import gateways
from models import transaction
from services.core import audit, request_ids
from services.health import backlog
from services.roles import in_doubt, outbox, write_results
from services.roles.outbox import Intent, TokenRejected, WriteOutcome, WriteResult
from services.roles.writer_lease import Lease, LeaseLost, lease
from services.runtime.database_faults import is_the_databases
from services.runtime.postgres_listen import wait
from services.runtime.retries import doubled, repeat_forever
from services.runtime.task_cancellation import stop

log = logging.getLogger(f"holdfast.{__name__}")

AT_ONCE = 16
IDLE_SECONDS = 1.0
LEASE_SECONDS = 2.0
TOKEN_PAUSE_SECONDS = 300.0
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 1.0, 30.0
"""The shortest and the longest pause in seconds of a guild for which Discord fails."""


class RoleWriter:
    """The sender of intents while this process holds the lease; a process without the lease waits for it."""

    def __init__(self, called: asyncio.Event) -> None:
        self.called: asyncio.Event = called
        self.tried: set[tuple[int, datetime]] = set()
        """Intents that this process has begun to send, until the ledger has the result. Until then, only a read of the
        member shows the outcome."""
        self.resting: dict[str, float] = {}
        """Guilds that pause, at their rate limit or while Discord fails, and until when (loop time)."""
        self.failing: dict[str, int] = {}
        """Guilds for which Discord fails, and the failures in a row; the pause grows each time."""
        self.last: int = 0
        """The id of the server served last."""

    async def run(self) -> None:
        """Write until cancelled, whenever the lease is free."""
        await repeat_forever(self._write_if_free, log, "writing will be retried", LEASE_SECONDS)

    async def _write_if_free(self) -> None:
        """Write until the lease is lost; return at once if another process has it."""
        try:
            async with lease() as held:
                if held is not None:
                    await self._write(held)
        except LeaseLost as fault:
            log.warning("database did not answer, writing stopped reason=%s", fault)
        except TokenRejected:
            log.critical("bot token rejected by Discord, no roles change until it is replaced")
            async with transaction() as db:
                await audit.record(db, audit.line("writer.stopped", data={"reason": "token rejected"}))
            await asyncio.sleep(TOKEN_PAUSE_SECONDS)

    async def _write(self, held: Lease) -> None:
        running: dict[asyncio.Task[None], Intent] = {}
        # No intent from before the lease is sent without a read, so these need no memory.
        self.tried = {key for key in self.tried if key[1] >= held.since}
        try:
            while True:
                if len(running) < AT_ONCE:
                    await self._start(running, held)
                # A finished change sets the event too. The end of a pause ends this wait.
                await wait(self.called, self._pause())
                for task in [task for task in running if task.done()]:
                    running.pop(task)
                    task.result()
        finally:
            await stop(*running)

    async def _start(self, running: dict[asyncio.Task[None], Intent], held: Lease) -> None:
        """Start intents while there is room. Raises LeaseLost, with nothing started, if the lease is lost."""
        room = AT_ONCE - len(running)
        # Read through the connection that holds the lease: if it answers, we still hold it.
        busy = Counter(intent.guild_id for intent in running.values())
        full = [guild for guild, count in busy.items() if count >= self._most(guild)]
        under_way = {intent.id for intent in running.values()}
        rows = await held.ask(outbox.question(room, under_way, [*self._resting(), *full], self.last))
        for intent in outbox.answered(rows):
            if busy[intent.guild_id] >= self._most(intent.guild_id):
                continue
            busy[intent.guild_id] += 1
            self.last = intent.server_id
            task = asyncio.create_task(self._carry_out(intent, held.since))
            task.add_done_callback(lambda _: self.called.set())
            running[task] = intent

    def _most(self, guild: str) -> int:
        """Return the most concurrent changes in a guild: one while Discord fails, to show whether it recovers."""
        return 1 if guild in self.failing else outbox.EACH

    def _resting(self) -> list[str]:
        now = asyncio.get_running_loop().time()
        self.resting = {guild: until for guild, until in self.resting.items() if until > now}
        return list(self.resting)

    def _rest_if_failing(self, guild: str, outage: bool) -> None:
        """Pause a guild for which Discord fails, because each attempt there occupies a place for seconds."""
        if not outage:
            self.failing.pop(guild, None)
            return
        if guild in self._resting():
            return  # attempts that ran together count once
        times = self.failing.get(guild, 0)
        self.failing[guild] = times + 1
        rest = doubled(FIRST_REST_SECONDS, times, LONGEST_REST_SECONDS)
        until = asyncio.get_running_loop().time() + rest
        self.resting[guild] = until

    def _pause(self) -> float:
        """Return the seconds until there may be work without a notification, when a guild's or intent's pause ends."""
        now = asyncio.get_running_loop().time()
        return min([IDLE_SECONDS, *(self.resting[guild] - now for guild in self._resting())])

    async def _carry_out(self, intent: Intent, since: datetime) -> None:
        key = (intent.id, intent.intended_at)
        known = key in self.tried
        sure = not known and outbox.surely_unsent(intent, since)
        self.tried.add(key)
        with request_ids.under(intent.request_id):
            outcome = await self._attempt(Attempt(intent, sure))
        # The ledger has the result now, also as the number of attempts; or nothing was sent and nothing has changed.
        if outcome.result is not WriteResult.NOT_YET or not known:
            self.tried.discard(key)

    async def _attempt(self, attempt: "Attempt") -> WriteOutcome:
        intent = attempt.intent
        try:
            outcome = await attempt.send()
            if outcome.result is WriteResult.NOT_YET:
                await attempt.take_back()
                now = asyncio.get_running_loop().time()
                self.resting[intent.guild_id] = now + (outcome.pause or IDLE_SECONDS)
                return outcome
            self._rest_if_failing(intent.guild_id, outcome.outage)
            await attempt.record(outcome)
        except TokenRejected:
            raise
        except Exception as fault:
            if is_the_databases(fault):
                raise
            # A change that always fails must not delay the others.
            log.exception(
                "failed to change role=%s member=%s server=%s", intent.role_id, intent.discord_id, intent.server_id
            )
            outcome = outbox.try_later(intent, backlog.own_fault(fault))
            # A removal that began stays in doubt: we do not know whether it was sent.
            async with transaction() as db:
                await write_results.record(db, intent, outcome)
        log.info(
            "finished role change action=%s role=%s server=%s result=%s",
            "give" if intent.giving else "take", intent.role_id, intent.server_id, outcome.result.value,
        )  # fmt: skip
        return outcome


class Attempt:
    """One attempt to carry out an intent. A removal is in doubt from its beginning until Discord answers."""

    def __init__(self, intent: Intent, sure: bool) -> None:
        self.intent: Intent = intent
        self.sure: bool = sure
        """Whether nobody can have sent the change before."""
        self.in_doubt: bool = False
        """Whether this attempt recorded that its removal is in doubt."""

    async def send(self) -> WriteOutcome:
        """Ask Discord for the change. Raises TokenRejected."""
        return await outbox.carry_out(gateways(), self.intent, sure=self.sure, begin=self._begin)

    async def _begin(self) -> bool:
        """Record that the removal is about to be sent; return False if it is no longer wanted."""
        async with transaction() as db:
            wanted = await write_results.is_still_wanted(db, self.intent)
            self.in_doubt = wanted and await in_doubt.begin_removal(db, self.intent.line)
        return wanted

    async def take_back(self) -> None:
        """Record that nothing was sent."""
        if self.in_doubt:
            async with transaction() as db:
                await in_doubt.clear_doubt(db, self.intent.line)

    async def record(self, outcome: WriteOutcome) -> None:
        """Record the result."""
        async with transaction() as db:
            await write_results.record(db, self.intent, outcome)
            if self.in_doubt and not outcome.unanswered:
                await in_doubt.clear_doubt(db, self.intent.line)
