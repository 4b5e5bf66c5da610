"""REST: channels and their overwrites."""

from typing import Any

from sandbox.discord import audit, channels, permissions, shapes
from sandbox.discord.entities import Channel, Guild, Overwrite
from sandbox.discord.errors import DiscordError, form_error, missing_permissions, unknown
from sandbox.discord.fields import Form, given_number, given_switch, given_text, needed_text, snowflake_text
from sandbox.discord.rest import Call, Endpoint, answered

MOST_CHANNELS = 500
TYPES = (0, 2, 4, 5, 13, 14, 15)
OF_ROLE = 0


async def list_channels(call: Call) -> list[Any]:
    """GET /guilds/{guild}/channels."""
    return [shapes.channel(channel) for channel in call.guild().channels.values()]


async def post_channel(call: Call) -> Any:
    """POST /guilds/{guild}/channels."""
    guild = call.guild()
    call.need(guild, permissions.MANAGE_CHANNELS)
    if len(guild.channels) >= MOST_CHANNELS:
        raise DiscordError(400, 30013, f"Maximum number of server channels reached ({MOST_CHANNELS})")
    form = call.form()
    name = needed_text(form, "name", 100)
    channel = Channel(call.discord.world.ids.next(), guild.id, name, position=len(guild.channels))
    _write(call, guild, channel, form)
    if channel.type == 0:
        channel.name = name.lower().replace(" ", "-")
    channels.opened(call.discord, channel)
    audit.note(call.discord.world, guild.id, call.by, f"created the channel {channel.name}", channel.id)
    return answered(shapes.channel(channel), 201)


async def get_channel(call: Call) -> dict[str, Any]:
    """GET /channels/{channel}."""
    return shapes.channel(call.channel()[1])


async def patch_channel(call: Call) -> dict[str, Any]:
    """PATCH /channels/{channel}."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.MANAGE_CHANNELS)
    form = call.form()
    name = given_text(form, "name", 100, 1)
    if name is not None:
        channel.name = name.lower().replace(" ", "-") if channel.type == 0 else name
    _write(call, guild, channel, {key: value for key, value in form.items() if key != "type"})
    channels.changed(call.discord, channel)
    audit.note(call.discord.world, guild.id, call.by, f"changed the channel {channel.name}", channel.id)
    return shapes.channel(channel)


async def delete_channel(call: Call) -> dict[str, Any]:
    """DELETE /channels/{channel}."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.MANAGE_CHANNELS)
    channels.closed(call.discord, channel)
    audit.note(call.discord.world, guild.id, call.by, f"deleted the channel {channel.name}", channel.id)
    return shapes.channel(channel)


async def put_overwrite(call: Call) -> None:
    """PUT /channels/{channel}/permissions/{id}."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.MANAGE_ROLES)
    overwrite = _overwrite(call, guild, {**call.form(), "id": call.snowflake("overwrite_id")}, "overwrite")
    channel.overwrites = [*(o for o in channel.overwrites if o.id != overwrite.id), overwrite]
    channels.changed(call.discord, channel)


async def delete_overwrite(call: Call) -> None:
    """DELETE /channels/{channel}/permissions/{id}."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.MANAGE_ROLES)
    overwrite_id = call.snowflake("overwrite_id")
    if all(overwrite.id != overwrite_id for overwrite in channel.overwrites):
        raise unknown("Overwrite")
    channel.overwrites = [o for o in channel.overwrites if o.id != overwrite_id]
    channels.changed(call.discord, channel)


def _write(call: Call, guild: Guild, channel: Channel, form: Form) -> None:
    kind = given_number(form, "type")
    if kind is not None:
        if kind not in TYPES:
            raise form_error("type", f"Value must be one of {TYPES}.")
        channel.type = kind
    if "topic" in form:
        channel.topic = given_text(form, "topic", 1024)
    nsfw, slowmode = given_switch(form, "nsfw"), given_number(form, "rate_limit_per_user")
    position = given_number(form, "position")
    channel.nsfw = channel.nsfw if nsfw is None else nsfw
    channel.slowmode = channel.slowmode if slowmode is None else slowmode
    channel.position = channel.position if position is None else position
    if form.get("parent_id") is not None:
        channel.parent_id = snowflake_text(form["parent_id"], "parent_id")
        if channel.parent_id not in guild.channels:
            raise form_error("parent_id", "Category does not exist")
    if form.get("permission_overwrites") is not None:
        wanted = form["permission_overwrites"]
        if not isinstance(wanted, list):
            raise form_error("permission_overwrites", "Only iterables may be used in a ListType")
        channel.overwrites = [
            _overwrite(call, guild, item, f"permission_overwrites.{at}") for at, item in enumerate(wanted)
        ]


def _overwrite(call: Call, guild: Guild, form: Form, path: str) -> Overwrite:
    """An overwrite of bits that the bot has itself; Manage Roles only by an administrator."""
    overwrite_id = snowflake_text(form.get("id"), f"{path}.id")
    kind = given_number(form, "type")
    kind = (OF_ROLE if overwrite_id in guild.roles else 1) if kind is None else kind
    if kind == OF_ROLE and overwrite_id not in guild.roles:
        raise unknown("Role")
    allow, deny = given_number(form, "allow") or 0, given_number(form, "deny") or 0
    own = permissions.guild_permissions(guild, call.own_member(guild))
    if not own & permissions.ADMINISTRATOR and (allow | deny) & (~own | permissions.MANAGE_ROLES):
        raise missing_permissions()
    return Overwrite(overwrite_id, kind, allow, deny)


ENDPOINTS = (
    Endpoint("GET", "/guilds/{guild_id}/channels", list_channels),
    Endpoint("POST", "/guilds/{guild_id}/channels", post_channel),
    Endpoint("GET", "/channels/{channel_id}", get_channel),
    Endpoint("PATCH", "/channels/{channel_id}", patch_channel),
    Endpoint("DELETE", "/channels/{channel_id}", delete_channel),
    Endpoint("PUT", "/channels/{channel_id}/permissions/{overwrite_id}", put_overwrite),
    Endpoint("DELETE", "/channels/{channel_id}/permissions/{overwrite_id}", delete_overwrite),
)
