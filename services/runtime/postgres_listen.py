"""Wait for notifications from the database instead of polling it."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping

import psycopg
from psycopg import sql

from models import connect
from services.runtime.database_faults import first_line

log = logging.getLogger(f"holdfast.{__name__}")

_RECONNECT_SECONDS = 2
_PING_SECONDS = 10.0


class Listener:
    """One connection that LISTENs; each channel has an event that its loop waits for."""

    def __init__(self, channels: Mapping[str, asyncio.Event]) -> None:
        self.channels: Mapping[str, asyncio.Event] = channels

    async def run(self) -> None:
        """Listen until cancelled. After a reconnect all events are set, because a notification may have been missed."""
        while True:
            try:
                await self._listen()
            except psycopg.OperationalError as fault:
                log.warning("listening connection to the database lost reason=%s", first_line(fault))
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def _listen(self) -> None:
        async with await connect() as connection:
            for channel in self.channels:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            for event in self.channels.values():
                event.set()
            while True:
                async for notice in connection.notifies(timeout=_PING_SECONDS):
                    self.channels[notice.channel].set()
                # Silence does not show whether the server is still there.
                await connection.execute("SELECT 1")


async def wait(event: asyncio.Event, seconds: float) -> None:
    """Return once the event is set or the time is over; the event is clear afterwards."""
    # Not `wait_for`: in Python 3.11 it loses a cancellation that arrives together with the event.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    event.clear()
