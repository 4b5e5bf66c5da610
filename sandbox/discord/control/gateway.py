"""`/control/gateway` and `/control/application`: disturb the bot's connection, and set what Discord allows the bot."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from sandbox.base.body import Body, fields, number, optional_text, text
from sandbox.base.refusal import Refusal
from sandbox.discord import LocalDiscord
from sandbox.discord.gateway import tampering
from sandbox.discord.world.lookup import find_guild

ACTIONS = ("drop", "malformed", "pause", "close", "send", *tampering.KINDS, "unavailable", "available")
_NUMBERS = ("max_concurrency", "identifies_left", "shards", "guilds_per_shard")
MOST_SENT = 10_000
"""The most copies of an event that one call sends, so that other callers do not wait long."""


def routes(discord: LocalDiscord) -> Sequence[web.AbstractRouteDef]:
    """Return the routes of the two calls; each answers with an empty object."""

    async def gateway(request: web.Request) -> web.Response:
        disturb(discord, await fields(request))
        return web.json_response({})

    async def application(request: web.Request) -> web.Response:
        body = await fields(request)
        wanted = {name: int(number(body, name)) for name in _NUMBERS if name in body}
        changed = replace(discord.application)
        changed.split(wanted.get("shards"), wanted.get("guilds_per_shard"))
        if "members_intent" in body:
            changed.set_intent(text(body, "members_intent"))
        if "user_install" in body:
            changed.user_install = body["user_install"] is True
        if "redirect_uris" in body:
            changed.register(body["redirect_uris"])
        discord.gateway.starts.set(max_concurrency=wanted.get("max_concurrency"), left=wanted.get("identifies_left"))
        discord.world.save(changed)
        return web.json_response({})

    return [web.post("/control/gateway", gateway), web.post("/control/application", application)]


def disturb(discord: LocalDiscord, body: Body) -> None:
    """Do one thing to the gateway. Raises Refusal."""
    gateway = discord.gateway
    match text(body, "action"):
        case "drop":
            gateway.drop()
        case "malformed":
            gateway.send_malformed()
        case "pause":
            gateway.pause(number(body, "seconds"))
        case "close":
            code = int(number(body, "code")) if "code" in body else 4000
            if not (1000 <= code <= 1014 or 3000 <= code <= 4999) or code in (1004, 1005, 1006):
                raise Refusal(400, "code is one that a WebSocket can be closed with.")
            gateway.close(code)
        case "send":
            _send(discord, body)
        case "unavailable":
            guild = _guild_with_bot(discord, body)
            gateway.begin_outage(guild, number(body, "seconds") if body.get("seconds") is not None else None)
        case "available":
            guild = _guild_with_bot(discord, body)
            if not gateway.is_out(guild.id):
                raise Refusal(409, f"{guild.name} is available.")
            gateway.end_outage(guild.id)
        case kind if kind in tampering.KINDS:
            wanted = optional_text(body, "guild")
            gateway.tampering.add(
                kind,
                optional_text(body, "event"),
                find_guild(discord, wanted).id if wanted else None,
                number(body, "times") if body.get("times") is not None else None,
                number(body, "seconds") if body.get("seconds") is not None else math.inf,
            )
        case action:
            raise Refusal(400, f"The gateway cannot {action!r}, only: {', '.join(ACTIONS)}.")


def _send(discord: LocalDiscord, body: Body) -> None:
    """Send any event; without `event`, a frame of the protocol from `payload`, which is then `{op, d}`."""
    payload: Any = body.get("payload")
    wanted = optional_text(body, "guild")
    guild_id = find_guild(discord, wanted).id if wanted else None
    event, times = optional_text(body, "event"), int(number(body, "times")) if body.get("times") is not None else 1
    if not 1 <= times <= MOST_SENT:
        raise Refusal(400, f"times is between 1 and {MOST_SENT}.")
    if event is None and isinstance(payload, dict) and payload.get("op") == 0:
        event, payload = optional_text(payload, "t"), payload.get("d")
    if event is not None:
        discord.gateway.send(event, payload, times, guild_id)
        return
    if not isinstance(payload, dict) or not isinstance(payload.get("op"), int):
        raise Refusal(400, "Without an event, payload is a frame: {op, d}.")
    for _ in range(times):
        discord.gateway.send_frame(payload["op"], payload.get("d"))


def _guild_with_bot(discord: LocalDiscord, body: Body) -> Any:
    guild = find_guild(discord, text(body, "guild"))
    if discord.bot_id not in guild.members:
        raise Refusal(404, f"The bot is not in {guild.name}.")
    return guild
