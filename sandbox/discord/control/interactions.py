"""`/control/interactions`: a person uses a command, a button, a select or a modal, and sees the answer."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from sandbox.base.body import Body, fields, number
from sandbox.base.refusal import Refusal
from sandbox.discord import LocalDiscord
from sandbox.discord.interactions import in_guild, outside_guild
from sandbox.discord.interactions.interactions import ANSWER_SECONDS, DEFERRED_UPDATE, Interaction

# Seconds to wait for a deferred answer, unless the call has `wait`; and for a change of the message once the bot has
# confirmed a press, which may be all that it does.
PATIENCE, ACKNOWLEDGED = 20.0, 5.0


def routes(discord: LocalDiscord) -> Sequence[web.AbstractRouteDef]:
    """Return routes to do something, and to read the result later."""

    async def act(request: web.Request) -> web.Response:
        status, seen = await used(discord, await fields(request))
        return web.json_response(seen, status=status)

    async def look(request: web.Request) -> web.Response:
        interaction = discord.interactions.by_id(request.match_info["id"])
        if interaction is None:
            raise Refusal(404, "There is no such interaction, or it is over 15 minutes old.")
        return web.json_response(discord.interactions.seen(interaction))

    return [web.post("/control/interactions", act), web.get("/control/interactions/{id}", look)]


async def used(discord: LocalDiscord, body: Body) -> tuple[int, dict[str, Any]]:
    """Send what the person did to the bot and wait for its answer.

    Returns 200 or 504, and what the person sees by then. Raises Refusal for what Discord's client would not offer.
    """
    builder = in_guild if body.get("context") is None else outside_guild
    interaction, event = builder.build(discord.interactions, body)
    discord.interactions.begin(interaction)
    if not discord.gateway.sessions:
        return _nothing(discord, interaction, "No bot is connected to the gateway.")
    if builder is outside_guild:
        discord.gateway.send_from_outside(interaction.guild_id, "INTERACTION_CREATE", event)
    else:
        discord.gateway.dispatch(interaction.guild_id, "INTERACTION_CREATE", event, 0)
    return await _awaited(discord, interaction, number(body, "wait") if "wait" in body else None)


async def _awaited(
    discord: LocalDiscord, interaction: Interaction, patience: float | None
) -> tuple[int, dict[str, Any]]:
    await _until_changed(interaction, interaction.began + ANSWER_SECONDS)
    if interaction.callback is None:
        return _nothing(discord, interaction, f"The bot did not answer within {ANSWER_SECONDS:g} seconds.")
    if patience is None:
        patience = ACKNOWLEDGED if interaction.callback == DEFERRED_UPDATE else PATIENCE
    deadline = time.monotonic() + patience
    while not interaction.answered and await _until_changed(interaction, deadline):
        pass
    if not interaction.answered and interaction.callback != DEFERRED_UPDATE:
        return _nothing(discord, interaction, f"The bot deferred its answer and gave none in {patience:g} seconds.")
    return 200, discord.interactions.seen(interaction)


async def _until_changed(interaction: Interaction, deadline: float) -> bool:
    """Return whether something changed before the deadline (monotonic seconds)."""
    try:
        await asyncio.wait_for(interaction.changed.wait(), max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        return False
    interaction.changed.clear()
    return True


def _nothing(discord: LocalDiscord, interaction: Interaction, message: str) -> tuple[int, dict[str, Any]]:
    return 504, {"message": message, **discord.interactions.seen(interaction)}
