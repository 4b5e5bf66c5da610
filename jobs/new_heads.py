"""The call of a chain's follower when a node tells of a new block; without one it looks by the clock all the same."""

import asyncio
import logging

from gateways import gateways
from services.triggers import transfer_poller
from services.triggers.transfer_poller import UnreadableTransfers

log = logging.getLogger("holdfast.jobs.new_heads")

AGAIN_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0


class HeadCalls:
    """One chain's socket; `called` is set whenever it tells of a block."""

    def __init__(self, chain: str, called: asyncio.Event) -> None:
        self.chain: str = chain
        self.called: asyncio.Event = called

    async def run(self) -> None:
        """Listen for ever; a connection that ends is taken up again, ever more rarely while it cannot be had."""
        pause = AGAIN_SECONDS
        while True:
            try:
                async for _ in transfer_poller.new_blocks(gateways(), self.chain):
                    self.called.set()
                    pause = AGAIN_SECONDS
            except UnreadableTransfers as fault:
                log.warning("new blocks are not told of, they are looked for every few seconds: %s", fault)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
