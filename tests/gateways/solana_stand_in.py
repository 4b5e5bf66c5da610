"""A Solana endpoint that gives a test's answers, method by method."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from gateways.solana.node import GENESIS

Reply = Any | Callable[[Any], Any]
"""A result, a web.Response, an {"error": …}, "hang", or a function of the call's parameters that gives one of these."""


@dataclass
class StandIn:
    """One endpoint; `says` has a reply for each method, and `asked` the requests received as (method, parameters)."""

    url: str = ""
    slot: int = 1_000
    says: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.says |= {
            "getGenesisHash": GENESIS,
            "getSlot": lambda _: self.slot,
            "getBlockTime": lambda _: int(time.time()),
        }

    def count(self, method: str) -> int:
        """Return how often a method was called."""
        return sum(1 for name, _ in self.asked if name == method)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        call = json.loads(await request.text())
        self.asked.append((call["method"], call["params"]))
        reply = self.says.get(call["method"], {"error": {"code": -32601, "message": "Method not found"}})
        if callable(reply):
            reply = reply(call["params"])
        if reply == "hang":
            await asyncio.sleep(30)
        if isinstance(reply, web.Response):
            return reply
        content = reply if isinstance(reply, dict) and reply.keys() == {"error"} else {"result": reply}
        return web.json_response({"jsonrpc": "2.0", "id": call["id"], **content})


@asynccontextmanager
async def standing_in() -> AsyncIterator[StandIn]:
    """An endpoint on a free port of this machine."""
    made = StandIn()
    app = web.Application()
    app.router.add_post("/", made.handle)
    server = TestServer(app)
    await server.start_server(shutdown_timeout=0.1)
    made.url = str(server.make_url("/"))
    try:
        yield made
    finally:
        await server.close()


def busy(seconds: str = "0.01") -> Callable[[Any], web.Response]:
    """Return a reply of HTTP 429."""
    return lambda _: web.Response(status=429, headers={"Retry-After": seconds}, text="{}")
