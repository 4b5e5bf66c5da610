"""What can happen to channels. No permissions are checked here."""

from typing import Any

from sandbox.discord.world import intents, shapes
from sandbox.discord.world.entities import Channel
from sandbox.discord.world.protocols import Discord

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
    """Delete a channel with its messages. Channels of a deleted category stay, in no category."""
    discord.world.remove(channel)
    discord.gateway.dispatch(channel.guild_id, "CHANNEL_DELETE", shapes.channel(channel), intents.GUILDS)
    for other in discord.world.guilds[channel.guild_id].channels.values():
        if other.parent_id == channel.id:
            other.parent_id = None
            changed(discord, other)
