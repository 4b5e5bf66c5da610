"""A browser's socket without a browser: it speaks Engine.IO and Socket.IO as Reflex's screens do."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

from tests.system.web.conftest import Web

HELLO = "40/_event,"
BOOT = "reflex___state____state.hydrate_and_load"
PATIENCE_SECONDS = 60
"""How long a message may take on a busy machine; one that never comes fails its test instead of holding the run up."""


class Socket:
    """One socket, which keeps what it receives."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.got: list[str] = []
        self.terms: dict[str, Any] = {}
        """What the server asks of a browser, such as how long it may be silent."""

    @property
    def reason(self) -> str:
        """The other side's reason for closing."""
        return self._connection.close_reason or ""

    async def send(self, text: str | bytes) -> None:
        """Send a message unchanged."""
        await self._connection.send(text)

    async def event(self, name: str, payload: object = None, place: str = "/") -> None:
        """Send an event."""
        said = {"name": name, "payload": {} if payload is None else payload, "router_data": at(place)}
        await self.send(f"42/_event,{json.dumps(['event', said])}")

    async def until(self, mark: str) -> str:
        """Return the next message that contains this text, answering pings meanwhile.

        Raises ConnectionClosed, and TimeoutError when none comes.
        """
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                text = str(await self._connection.recv())
                if text == "2":
                    await self.send("3")
                    continue
                self.got.append(text)
                if mark in text:
                    return text

    async def alive(self) -> None:
        """Wait until the other side has read everything sent so far. Raises ConnectionClosed."""
        await self.send('42/_event,["ping"]')
        await self.until('["ping","pong"]')

    async def closed(self) -> tuple[int, str]:
        """Return the other side's code and reason for closing; fails when it answers instead."""
        try:
            await self.alive()
        except ConnectionClosed:
            return self._connection.close_code or 0, self._connection.close_reason or ""
        pytest.fail("the socket stays open")


def at(place: str) -> dict[str, Any]:
    """Return a page's address as an event carries it."""
    return {"pathname": place.partition("?")[0], "asPath": place}


@asynccontextmanager
async def socket(
    web: Web,
    session: str | None = None,
    *,
    origin: str | None = None,
    hello: bool = True,
    tab: str | None = None,
    sender: str | None = None,
) -> AsyncIterator[Socket]:
    """The socket of a fresh tab (or of this one), signed in if a session's id is given, and closed at the end.

    `sender` is this machine's address from which it connects.
    """
    headers = {"Cookie": f"hf_session={session}"} if session else {}
    address = f"{web.url.replace('http', 'ws', 1)}/_event/?EIO=4&transport=websocket&token={tab or uuid4()}"
    async with connect(
        address, additional_headers=headers, origin=Origin(origin or web.url), max_size=None,
        ping_interval=None, proxy=None, local_addr=(sender, 0) if sender else None,
    ) as connection:  # fmt: skip
        made = Socket(connection)
        made.terms = json.loads((await made.until("0{")).removeprefix("0"))
        if hello:
            await made.send(f"{HELLO}{json.dumps({'event': {'name': BOOT, 'payload': {}, 'router_data': at('/')}})}")
            await made.until(HELLO)
        yield made
