"""The gateway's address: where clients connect, and the faults that keep them out."""

import asyncio

from aiohttp import web

from sandbox.base.faults import SLOW_SECONDS, hang_up
from sandbox.discord.answers.limits import Verdict, too_many
from sandbox.discord.answers.response import answered
from sandbox.discord.gateway.gateway import Gateway
from sandbox.discord.gateway.websocket import Connection


def routes(gateway: Gateway) -> list[web.RouteDef]:
    """Return the WebSocket's routes, with and without the trailing slash."""

    async def connect(request: web.Request) -> web.StreamResponse:
        return await _connect(gateway, request)

    return [web.get("/discord/gateway", connect), web.get("/discord/gateway/", connect)]


async def _connect(gateway: Gateway, request: web.Request) -> web.StreamResponse:
    match gateway.fault:
        case "down":
            return hang_up(request)
        case "429":
            headers = {"Retry-After": "2", "X-RateLimit-Scope": "user"}
            return answered(too_many(Verdict(False, "user", 2.0, headers)), 429, headers)
        case "500":
            return answered({"message": "500: Internal Server Error", "code": 0}, 500)
        case "slow":
            await asyncio.sleep(SLOW_SECONDS)
        case _:
            pass
    connection = Connection(gateway, request)
    with gateway.connected(connection):
        return await connection.run()
