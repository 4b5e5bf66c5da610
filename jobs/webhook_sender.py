"""Post servers' events to their webhooks."""

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import urlsplit

from locales import N_
from models import transaction
from services.accounts.developers import webhook_deliveries
from services.accounts.developers.webhook_client import WebhookClient
from services.accounts.developers.webhook_deliveries import DeliveryTurn
from services.runtime.database_faults import is_the_databases
from services.runtime.retries import database_errors_logged

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS = 1.0
"""Pause when nothing is due."""
LANES = 16
"""Servers served at a time."""
UNHEALTHY_LANES = 4
"""The lanes for servers whose receivers fail or are slow, so that even thousands of those delay no others."""
SLOW_SECONDS = 3.0
"""Seconds for one delivery after which a receiver counts as slow."""
TURN_SECONDS = 30.0
"""Seconds after which a server's turn ends; its other deliveries wait for the next turn."""
MOST_FOR_ONE_HOST = 4
"""Servers with receivers on the same host that are served at a time."""
CROWDED = timedelta(seconds=2)
FAULTY = timedelta(minutes=1)
"""Pause of a server after an error of our own, which would otherwise follow again at once."""
UNREADABLE = N_("the secret cannot be read any more: make a new one")


class WebhookSender:
    """The sender in each jobs process; at any time, one lane of one process sends a server's deliveries."""

    def __init__(self, client: WebhookClient | None = None) -> None:
        self._client = client or WebhookClient()
        self._hosts = Counter[str]()
        self._unhealthy = 0

    async def run(self) -> None:
        """Send until cancelled."""
        lanes = asyncio.Semaphore(LANES)
        try:
            async with asyncio.TaskGroup() as turns:
                while True:
                    await lanes.acquire()
                    turn = None
                    with database_errors_logged(log, "deliveries will be sent later"):
                        turn = await self._claim()
                    if turn is not None:
                        turns.create_task(self._lane(turn, lanes))
                        continue
                    lanes.release()
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            await self._client.close()

    async def once(self) -> bool:
        """Serve one server; return False if nothing is due."""
        turn = await self._claim()
        if turn is not None:
            await self._take(turn)
        return turn is not None

    async def _lane(self, turn: DeliveryTurn, lanes: asyncio.Semaphore) -> None:
        try:
            with database_errors_logged(log, "deliveries will be sent again"):
                await self._take(turn)
        except Exception:
            # The other lanes must not end with this one: what they have posted but not recorded would be posted again.
            log.exception("failed to serve webhook server=%s", turn.server_id)
        finally:
            lanes.release()

    async def _claim(self) -> DeliveryTurn | None:
        async with transaction() as db:
            return await webhook_deliveries.claim(db, uuid.uuid4().hex, healthy=self._unhealthy >= UNHEALTHY_LANES)

    async def _take(self, turn: DeliveryTurn) -> None:
        slow = None
        host = urlsplit(turn.url).hostname or ""
        crowded = self._hosts[host] >= MOST_FOR_ONE_HOST
        rest = CROWDED if crowded else None
        try:
            if not crowded:
                with self._counted(host, unhealthy=turn.slow or turn.failures > 0):
                    slow = await self._serve(turn)
        except Exception as fault:
            if not is_the_databases(fault):
                rest = FAULTY
            raise
        finally:
            async with transaction() as db:
                await webhook_deliveries.release(db, turn, rest, slow=slow)

    @contextmanager
    def _counted(self, host: str, *, unhealthy: bool) -> Generator[None]:
        self._hosts[host] += 1
        self._unhealthy += unhealthy
        try:
            yield
        finally:
            self._unhealthy -= unhealthy
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]

    async def _serve(self, turn: DeliveryTurn) -> bool | None:
        """Send the turn's deliveries in order, up to the first that fails; return whether the receiver is slow.

        A slow delivery ends the turn. So does the first success after an outage, because more is due then. An early
        delivery that fails ends nothing: perhaps the receiver refuses only that one.
        """
        end = time.monotonic() + TURN_SECONDS
        slow = None
        async with transaction() as db:
            orders = await webhook_deliveries.due(db, turn)
        for order in orders:
            if time.monotonic() >= end:
                break
            if order.body is None:
                async with transaction() as db:
                    await webhook_deliveries.drop(db, order)
                continue
            begun = time.monotonic()
            fault = await self._client.post(turn, order, order.body) if turn.secrets else UNREADABLE
            slow = time.monotonic() - begun > SLOW_SECONDS
            async with transaction() as db:
                if not fault:
                    await webhook_deliveries.record_delivery(db, turn, order)
                else:
                    await webhook_deliveries.record_failure(db, turn, order, fault)
            if fault:
                log.info(
                    "webhook delivery failed server=%s attempts=%d reason=%s", turn.server_id, order.attempts + 1, fault
                )
            if fault and order.early:
                continue
            if fault or slow or turn.after_outage:
                break
        return slow
