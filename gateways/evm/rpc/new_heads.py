"""New blocks as a node's WebSocket announces them, where the operator has set one; their content is read over HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import cast

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from gateways.chains.catalogue import CHAINS
from gateways.transport.errors import ProviderConfused, ProviderDown, ProviderRefused

OPEN_SECONDS = 10.0
SILENT_SECONDS = 60.0
SILENT_BLOCKS = 20
"""A socket that announces no block for SILENT_SECONDS and for this many usual block times has lost its subscription."""
LARGEST_MESSAGE = 1_000_000
"""Bytes; a head has a few hundred."""
_SUBSCRIBE = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}).decode()


class _DirectConnection(connect):
    """A connection that follows no redirect: a node must not choose whom we contact."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Return the refusal, where the library would return another URL to try."""
        return exc


class NewHeads:
    """Announcements of new blocks.

    `urls` maps a chain's key to the URL of its socket, which may hold a key and so is shown to nobody.
    """

    def __init__(self, urls: Mapping[str, str]) -> None:
        self._urls = urls

    def offered(self, chain: str) -> bool:
        """Return whether a socket is set for the chain."""
        return bool(self._urls.get(chain))

    async def follow(self, chain: str) -> AsyncGenerator[None]:
        """Yield once when the subscription begins, because blocks may have come before it, and once for each new block.

        Raises ProviderError when the connection cannot be opened, or ends.
        """
        name = f"{CHAINS[chain].title} (socket)"
        silence = max(SILENT_SECONDS, SILENT_BLOCKS * CHAINS[chain].block_seconds)
        try:
            async with _DirectConnection(
                self._urls[chain], open_timeout=OPEN_SECONDS, max_size=LARGEST_MESSAGE
            ) as socket:
                await socket.send(_SUBSCRIBE)
                while True:
                    _check(name, await _next(socket, silence))
                    yield
        except (WebSocketException, OSError, TimeoutError) as fault:
            raise ProviderDown(name, f"no connection ({type(fault).__name__})") from None


async def _next(socket: ClientConnection, seconds: float) -> object:
    async with asyncio.timeout(seconds):
        said = await socket.recv()
    try:
        return orjson.loads(said)
    except orjson.JSONDecodeError:
        return None


def _check(name: str, said: object) -> None:
    """Raise ProviderError for a message that is neither the subscription's number nor a block."""
    fields = cast("dict[str, object]", said) if isinstance(said, dict) else {}
    if "error" in fields:
        raise ProviderRefused(name, "it refuses the subscription", status=200)
    if fields.get("method") != "eth_subscription" and not isinstance(fields.get("result"), str):
        raise ProviderConfused(name, "what it says is not a new block")
