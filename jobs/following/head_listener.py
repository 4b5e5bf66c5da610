"""Wake a chain's follower when a node announces a block. Without announcements, the follower polls by the clock."""

import asyncio
import logging

from gateways import gateways
from services.runtime.logs import RareWarnings
from services.runtime.retries import backoff
from services.triggers import transfer_poller
from services.triggers.transfer_poller import UnreadableTransfers

log = logging.getLogger(f"holdfast.{__name__}")

RESTART_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0


class HeadListener:
    """One chain's block subscription; sets `called` on each new block."""

    def __init__(self, chain: str, called: asyncio.Event) -> None:
        self.chain: str = chain
        self.called: asyncio.Event = called
        self._faults = RareWarnings(log)

    async def run(self) -> None:
        """Listen until cancelled, and reconnect with pauses that grow until a subscription lasts."""
        loop, pauses = asyncio.get_running_loop(), backoff(RESTART_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            began = loop.time()
            try:
                async for _ in transfer_poller.new_blocks(gateways(), self.chain):
                    self.called.set()
            except UnreadableTransfers as fault:
                self._faults.add("block subscription failed, falling back to polling reason=%s", fault)
            if loop.time() - began > LONGEST_PAUSE_SECONDS:
                pauses = backoff(RESTART_SECONDS, LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(next(pauses))
