"""`/control`: the sandbox for programs: the calls of Discord and of the whole; each other provider adds its own."""

from collections.abc import Sequence

from aiohttp import web

from sandbox.assembly import WholeSandbox
from sandbox.base.body import fields, flag, is_whole, number, text
from sandbox.base.faults import check_target
from sandbox.base.refusal import Refusal
from sandbox.discord.control import gateway, guilds
from sandbox.marketplaces.plans import LIMITS

LONGEST_WINDOW = 86_400


def routes(sandbox: WholeSandbox) -> Sequence[web.AbstractRouteDef]:
    """Return routes for Discord's calls, and for world, reset, requests, faults, limits and readiness."""

    async def world(_: web.Request) -> web.Response:
        return web.json_response(await sandbox.world())

    async def reset(_: web.Request) -> web.Response:
        await sandbox.reset()
        return web.json_response({})

    async def requests(request: web.Request) -> web.Response:
        since = request.query.get("since", "0")
        if not is_whole(since):
            raise Refusal(400, "since is the number of a request.")
        return web.json_response(sandbox.traffic.since(int(since)))

    async def set_fault(request: web.Request) -> web.Response:
        body = await fields(request)
        target, kind = text(body, "target"), text(body, "kind")
        if kind in ("answer", "latency"):
            check_target(target)
            sandbox.faults.routes.add(target, kind, body)
        else:
            sandbox.faults.set(target, kind, number(body, "seconds"))
        return web.json_response({})

    async def clear_faults(_: web.Request) -> web.Response:
        sandbox.faults.clear()
        return web.json_response({})

    async def limits(_: web.Request) -> web.Response:
        return web.json_response(sandbox.limits())

    async def set_limit(request: web.Request) -> web.Response:
        body = await fields(request)
        if "strict" in body:
            sandbox.be_strict(flag(body, "strict"))
            return web.json_response(sandbox.limits())
        target, left, seconds = text(body, "target"), number(body, "left"), number(body, "seconds")
        markets = sandbox.marketplaces
        if target != "discord" and (markets is None or target not in LIMITS):
            raise Refusal(404, f"No limit of {target!r} can be set, only those of: discord, {', '.join(LIMITS)}.")
        if not (left >= 0 and 0 < seconds <= LONGEST_WINDOW):
            raise Refusal(400, f"left is at least 0, and seconds are more than 0 and at most {LONGEST_WINDOW}.")
        if target == "discord":
            sandbox.discord.edge.invalid.set(int(left), seconds)
        elif markets is not None:
            markets.set_limit(target, int(left), seconds)
        return web.json_response(sandbox.limits())

    async def clear_limits(_: web.Request) -> web.Response:
        sandbox.renew_limits()
        return web.json_response(sandbox.limits())

    async def ready(_: web.Request) -> web.Response:
        return web.json_response({"ready": sandbox.ready.is_set()}, status=200 if sandbox.ready.is_set() else 503)

    return [
        *guilds.routes(sandbox.discord),
        *gateway.routes(sandbox.discord),
        web.get("/control/world", world),
        web.post("/control/reset", reset),
        web.get("/control/requests", requests),
        web.post("/control/faults", set_fault),
        web.delete("/control/faults", clear_faults),
        web.get("/control/limits", limits),
        web.put("/control/limits", set_limit),
        web.delete("/control/limits", clear_limits),
        web.get("/control/ready", ready),
    ]
