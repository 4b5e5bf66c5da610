"""REST: messages in channels."""

from datetime import timedelta
from typing import Any

from sandbox.discord.actions import messages
from sandbox.discord.answers.errors import DiscordError, form_error, missing_permissions, unknown
from sandbox.discord.answers.limits import POSTS
from sandbox.discord.rest.call import Call, Endpoint
from sandbox.discord.world import permissions
from sandbox.discord.world.entities import Message
from sandbox.discord.world.snowflakes import made_at, now_iso

REPLY = 19
NONCE_LIVES = timedelta(minutes=5)
_NO_PLACE = {
    4: (50008, "Cannot send messages in a non-text channel"),
    15: (40058, "Cannot send a message in a forum channel"),
    16: (40058, "Cannot send a message in a forum channel"),
}  # fmt: skip
"""Channel type → the refusal of messages in a category, and outside of a thread in a forum or a media channel."""


async def list_messages(call: Call) -> list[Any]:
    """Answer GET /channels/{channel}/messages, newest first; empty without Read Message History."""
    guild, channel = call.channel()
    limit = call.number("limit", 50, 1, 100)
    before, after, around = call.cursor("before"), call.cursor("after"), call.cursor("around")
    granted = permissions.channel_permissions(guild, channel, call.own_member(guild))
    if not granted & permissions.READ_MESSAGE_HISTORY:
        return []
    found = sorted(call.discord.world.messages[channel.id].values(), key=lambda message: -int(message.id))
    if around is not None:
        newer = [message for message in found if int(message.id) > around][-(limit // 2) :] if limit > 1 else []
        found = [*newer, *(message for message in found if int(message.id) <= around)]
    elif before is not None:
        found = [message for message in found if int(message.id) < before]
    if after is not None:
        found = [message for message in found if int(message.id) > after][-limit:]
    return [_shape(call, message) for message in found[:limit]]


async def post_message(call: Call) -> dict[str, Any]:
    """Answer POST /channels/{channel}/messages."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.SEND_MESSAGES)
    if channel.type in _NO_PLACE:
        raise DiscordError(400, *_NO_PLACE[channel.type])
    form = call.form()
    message = Message(call.discord.world.ids.next(), channel.id, call.discord.bot_id, "", now_iso())
    messages.write(call.discord, message, form, ephemeral_allowed=False)
    message.nonce = form.get("nonce")
    if form.get("enforce_nonce") and (earlier := _posted_with(call, message.nonce)):
        return _shape(call, earlier)
    if message.embeds:
        call.need_in(guild, channel, permissions.EMBED_LINKS)
    if reference := form.get("message_reference"):
        _refer(call, message, reference, permissions.channel_permissions(guild, channel, call.own_member(guild)))
    messages.posted(call.discord, message)
    return _shape(call, message)


def _refer(call: Call, message: Message, reference: dict[str, Any], granted: int) -> None:
    """Make the message a reply. Raises 160002 without Read Message History, 50035 for an unknown message."""
    if not granted & permissions.READ_MESSAGE_HISTORY:
        raise DiscordError(400, 160002, "Cannot reply without permission to read message history")
    replies_to, place = str(reference["message_id"]), str(reference.get("channel_id") or message.channel_id)
    if place == message.channel_id and replies_to in call.discord.world.messages[place]:
        message.type, message.replies_to = REPLY, replies_to
    elif reference.get("fail_if_not_exists", True):
        raise form_error("message_reference", "Unknown message")


def _posted_with(call: Call, nonce: Any) -> Message | None:
    """Return the bot's own message of the last minutes with this nonce, in any channel.

    With `enforce_nonce` it is returned instead of a new message.
    """
    if nonce is None:
        return None
    since = made_at(call.discord.world.ids.next()) - NONCE_LIVES
    return next(
        (
            message
            for posted in call.discord.world.messages.values()
            for message in posted.values()
            if message.nonce == nonce and message.author_id == call.discord.bot_id and made_at(message.id) >= since
        ),
        None,
    )


async def get_message(call: Call) -> dict[str, Any]:
    """Answer GET /channels/{channel}/messages/{message}."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.READ_MESSAGE_HISTORY)
    return _shape(call, _message(call, channel.id))


async def patch_message(call: Call) -> dict[str, Any]:
    """Answer PATCH /channels/{channel}/messages/{message}, for the bot's own messages only."""
    message = _message(call, call.channel()[1].id)
    if message.author_id != call.discord.bot_id:
        raise DiscordError(403, 50005, "Cannot edit a message authored by another user")
    messages.write(call.discord, message, call.form(), ephemeral_allowed=False)
    messages.edited(call.discord, message)
    return _shape(call, message)


async def delete_message(call: Call) -> None:
    """Answer DELETE /channels/{channel}/messages/{message}."""
    guild, channel = call.channel()
    message = _message(call, channel.id)
    granted = permissions.channel_permissions(guild, channel, call.own_member(guild))
    if message.author_id != call.discord.bot_id and not granted & permissions.MANAGE_MESSAGES:
        raise missing_permissions()
    messages.deleted(call.discord, message)


def _message(call: Call, channel_id: str) -> Message:
    message = call.discord.world.messages[channel_id].get(call.snowflake("message_id"))
    if message is None:
        raise unknown("Message")
    return message


def _shape(call: Call, message: Message) -> dict[str, Any]:
    return messages.shown(call.discord, message)


ENDPOINTS = (
    Endpoint("GET", "/channels/{channel_id}/messages", list_messages),
    Endpoint("POST", "/channels/{channel_id}/messages", post_message, strict_limit=POSTS),
    Endpoint("GET", "/channels/{channel_id}/messages/{message_id}", get_message),
    Endpoint("PATCH", "/channels/{channel_id}/messages/{message_id}", patch_message),
    Endpoint("DELETE", "/channels/{channel_id}/messages/{message_id}", delete_message),
)
