"""What can happen to channels and messages. No permissions are checked here."""

from typing import Any

from sandbox.discord.world import intents, shapes
from sandbox.discord.world.entities import EPHEMERAL, Channel, Message
from sandbox.discord.world.protocols import Discord
from sandbox.discord.world.snowflakes import now_iso

_CALL: dict[str, Any] = {"bitrate": 64_000, "user_limit": 0, "rtc_region": None, "video_quality_mode": 1}
_FORUM: dict[str, Any] = {
    "available_tags": [],
    "default_reaction_emoji": None,
    "default_sort_order": None,
    "default_forum_layout": 0,
    "template": "",
}
OF_TYPE = {2: _CALL, 13: {**_CALL, "user_limit": 10_000}, 15: _FORUM, 16: _FORUM}
"""The fields that only channels of one type have, with the values of a new channel. Clients require them."""


def opened(discord: Discord, channel: Channel) -> None:
    """Save a new channel, with the fields of its type, and tell the bot."""
    channel.extras = {**OF_TYPE.get(channel.type, {}), **channel.extras}
    discord.world.save(channel)
    discord.gateway.dispatch(channel.guild_id, "CHANNEL_CREATE", shapes.channel(channel), intents.GUILDS)


def changed(discord: Discord, channel: Channel) -> None:
    """Save a changed channel and tell the bot."""
    discord.world.save(channel)
    discord.gateway.dispatch(channel.guild_id, "CHANNEL_UPDATE", shapes.channel(channel), intents.GUILDS)


def closed(discord: Discord, channel: Channel) -> None:
    """Delete a channel with its messages."""
    discord.world.remove(channel)
    discord.gateway.dispatch(channel.guild_id, "CHANNEL_DELETE", shapes.channel(channel), intents.GUILDS)


def posted(discord: Discord, message: Message) -> None:
    """Put a message into its channel.

    An ephemeral message, or one in a direct message, is only remembered with its interaction.
    """
    if message.flags & EPHEMERAL or message.channel_id not in discord.world.channels:
        return
    channel = discord.world.channels[message.channel_id]
    channel.last_message_id = message.id
    discord.world.save(channel, message)
    _tell(discord, "MESSAGE_CREATE", message)


def edited(discord: Discord, message: Message) -> None:
    """Save an edited message."""
    message.edited_timestamp = now_iso()
    if not message.flags & EPHEMERAL and message.channel_id in discord.world.channels:
        discord.world.save(message)
        _tell(discord, "MESSAGE_UPDATE", message)


def deleted(discord: Discord, message: Message) -> None:
    """Delete a message."""
    if message.flags & EPHEMERAL or message.channel_id not in discord.world.channels:
        return
    discord.world.remove(message)
    guild_id = discord.world.channels[message.channel_id].guild_id
    event = {"id": message.id, "channel_id": message.channel_id, "guild_id": guild_id}
    discord.gateway.dispatch(guild_id, "MESSAGE_DELETE", event, intents.GUILD_MESSAGES)


def shown(discord: Discord, message: Message) -> dict[str, Any]:
    """Return the message as its channel shows it; a reply includes the message that it answers, or null."""
    users = discord.world.users
    shape = shapes.message(message, users[message.author_id])
    if message.replies_to is None:
        return shape
    answered = discord.world.messages[message.channel_id].get(message.replies_to)
    return {**shape, "referenced_message": answered and shapes.message(answered, users[answered.author_id])}


def _tell(discord: Discord, event: str, message: Message) -> None:
    guild = discord.world.guilds[discord.world.channels[message.channel_id].guild_id]
    author = discord.world.users[message.author_id]
    data: dict[str, Any] = {**shown(discord, message), "guild_id": guild.id}
    if author.id != discord.bot_id and all(one["id"] != discord.bot_id for one in message.mentions):
        # Without the message content intent the bot reads only its own messages and those that mention it.
        data |= {"content": "", "embeds": [], "components": []}
    if member := guild.members.get(author.id):
        partial = shapes.member(member, author)
        del partial["user"]
        data["member"] = partial
    discord.gateway.dispatch(guild.id, event, data, intents.GUILD_MESSAGES)
