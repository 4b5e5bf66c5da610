"""REST: answering interactions. The token in the path authorises the call, and none of them counts globally."""

from typing import Any

from sandbox.discord.answers.errors import unknown
from sandbox.discord.answers.limits import WEBHOOKS
from sandbox.discord.interactions.interactions import Interaction
from sandbox.discord.rest.call import Call, Endpoint
from sandbox.discord.world import shapes
from sandbox.discord.world.entities import Message


async def post_callback(call: Call) -> dict[str, Any] | None:
    """Answer POST /interactions/{id}/{token}/callback."""
    match = call.request.match_info
    interactions = call.discord.interactions
    interaction = interactions.call_back(call.snowflake("interaction_id"), match["interaction_token"], call.form())
    return interactions.resource(interaction) if call.switch("with_response") else None


async def get_webhook(call: Call) -> dict[str, Any]:
    """Answer GET /webhooks/{application}/{token}: the webhook that answers an interaction."""
    _interaction(call)
    bot = call.discord.world.users[call.discord.bot_id]
    return {
        "id": bot.id, "application_id": bot.id, "name": bot.username, "avatar": bot.avatar, "type": 3,
        "channel_id": None, "guild_id": None, "token": call.request.match_info["webhook_token"],
    }  # fmt: skip


async def post_follow_up(call: Call) -> dict[str, Any]:
    """Answer POST /webhooks/{application}/{token}."""
    return _shape(call, call.discord.interactions.follow_up(_interaction(call), call.form()))


async def get_message(call: Call) -> dict[str, Any]:
    """Answer GET /webhooks/{application}/{token}/messages/{message}."""
    return _shape(call, _message(call)[1])


async def patch_message(call: Call) -> dict[str, Any]:
    """Answer PATCH /webhooks/{application}/{token}/messages/{message}."""
    interaction, message = _message(call)
    return _shape(call, call.discord.interactions.edit(interaction, message, call.form()))


async def delete_message(call: Call) -> None:
    """Answer DELETE /webhooks/{application}/{token}/messages/{message}."""
    call.discord.interactions.delete(*_message(call))


def _interaction(call: Call) -> Interaction:
    if call.snowflake("webhook_id") != call.discord.bot_id:
        raise unknown("Webhook")
    return call.discord.interactions.live(call.request.match_info["webhook_token"])


def _message(call: Call) -> tuple[Interaction, Message]:
    interaction = _interaction(call)
    return interaction, call.discord.interactions.message(interaction, call.request.match_info["message_id"])


def _shape(call: Call, message: Message) -> dict[str, Any]:
    return shapes.message(message, call.discord.world.users[message.author_id])


_ONE = "/webhooks/{webhook_id}/{webhook_token}/messages/{message_id}"
ENDPOINTS = (
    Endpoint(
        "POST", "/interactions/{interaction_id}/{interaction_token}/callback", post_callback, "anyone", unlimited=True
    ),
    Endpoint("GET", "/webhooks/{webhook_id}/{webhook_token}", get_webhook, "anyone", WEBHOOKS, exempt=True),
    Endpoint("POST", "/webhooks/{webhook_id}/{webhook_token}", post_follow_up, "anyone", WEBHOOKS, exempt=True),
    Endpoint("GET", _ONE, get_message, "anyone", WEBHOOKS, exempt=True),
    Endpoint("PATCH", _ONE, patch_message, "anyone", WEBHOOKS, exempt=True),
    Endpoint("DELETE", _ONE, delete_message, "anyone", WEBHOOKS, exempt=True),
)
