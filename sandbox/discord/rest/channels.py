"""REST: channels and their overwrites."""

from typing import Any

from sandbox.discord.actions import channels
from sandbox.discord.answers.errors import DiscordError, form_error, missing_permissions, unknown
from sandbox.discord.answers.limits import RENAMES
from sandbox.discord.answers.response import answered
from sandbox.discord.forms import channels as forms
from sandbox.discord.forms.schema import Form
from sandbox.discord.rest.call import Call, Endpoint, TooMany
from sandbox.discord.world import audit, permissions, shapes
from sandbox.discord.world.entities import Channel, Guild, Overwrite

MOST_CHANNELS = 500
OF_ROLE = 0
_CALLS = (2, 13)
_OWN_NAMES = {"name": "name", "type": "type", "nsfw": "nsfw", "rate_limit_per_user": "slowmode", "position": "position"}


async def list_channels(call: Call) -> list[Any]:
    """Answer GET /guilds/{guild}/channels."""
    return [shapes.channel(channel) for channel in call.guild().channels.values()]


async def post_channel(call: Call) -> Any:
    """Answer POST /guilds/{guild}/channels."""
    guild = call.guild()
    call.need(guild, permissions.MANAGE_CHANNELS)
    if len(guild.channels) >= MOST_CHANNELS:
        raise DiscordError(400, 30013, f"Maximum number of server channels reached ({MOST_CHANNELS})")
    form = forms.new_channel(call.form())
    channel = Channel(call.discord.world.ids.next(), guild.id, form["name"], position=len(guild.channels))
    _write(call, guild, channel, form)
    channels.opened(call.discord, channel)
    audit.note(call.discord.world, guild.id, call.by, f"created the channel {channel.name}", channel.id)
    return answered(shapes.channel(channel), 201)


async def get_channel(call: Call) -> dict[str, Any]:
    """Answer GET /channels/{channel}."""
    return shapes.channel(call.channel()[1])


async def patch_channel(call: Call) -> dict[str, Any]:
    """Answer PATCH /channels/{channel}."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.MANAGE_CHANNELS)
    form = forms.changed_channel(call.form())
    form.pop("type", None)
    if (overwrites := form.get("permission_overwrites")) is not None:
        _need_to_overwrite(call, guild, channel, overwrites)
    if {"name", "topic"} & form.keys() and call.discord.sandbox.strict:
        _count_rename(call, channel)
    _write(call, guild, channel, form)
    channels.changed(call.discord, channel)
    audit.note(call.discord.world, guild.id, call.by, f"changed the channel {channel.name}", channel.id)
    return shapes.channel(channel)


async def delete_channel(call: Call) -> dict[str, Any]:
    """Answer DELETE /channels/{channel}."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.MANAGE_CHANNELS)
    channels.closed(call.discord, channel)
    audit.note(call.discord.world, guild.id, call.by, f"deleted the channel {channel.name}", channel.id)
    return shapes.channel(channel)


async def put_overwrite(call: Call) -> None:
    """Answer PUT /channels/{channel}/permissions/{id}."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.MANAGE_ROLES)
    form = forms.overwrite({**call.form(), "id": call.snowflake("overwrite_id")})
    overwrite = _overwrite(call, guild, form)
    channel.overwrites = [*(o for o in channel.overwrites if o.id != overwrite.id), overwrite]
    channels.changed(call.discord, channel)


async def delete_overwrite(call: Call) -> None:
    """Answer DELETE /channels/{channel}/permissions/{id}."""
    guild, channel = call.channel()
    call.need_in(guild, channel, permissions.MANAGE_ROLES)
    overwrite_id = call.snowflake("overwrite_id")
    if all(overwrite.id != overwrite_id for overwrite in channel.overwrites):
        raise unknown("Overwrite")
    channel.overwrites = [o for o in channel.overwrites if o.id != overwrite_id]
    channels.changed(call.discord, channel)


def _need_to_overwrite(call: Call, guild: Guild, channel: Channel, wanted: list[Form]) -> None:
    """Raise 50013 if the overwrites would change and the bot lacks Manage Roles in the channel."""
    now = {each.id: (each.allow, each.deny) for each in channel.overwrites}
    if now != {each["id"]: (each.get("allow", 0), each.get("deny", 0)) for each in wanted}:
        call.need_in(guild, channel, permissions.MANAGE_ROLES)


def _count_rename(call: Call, channel: Channel) -> None:
    verdict = call.discord.limits.take(call.discord.bot_token, RENAMES, channel.id)
    if not verdict.allowed:
        raise TooMany(verdict)


def _write(call: Call, guild: Guild, channel: Channel, form: Form) -> None:
    """Put checked fields into the channel. Raises 50035 for a type or a category that the guild does not have."""
    kind = form.get("type")
    if kind in forms.OF_COMMUNITIES and "COMMUNITY" not in shapes.guild(guild)["features"]:
        allowed = ", ".join(str(each) for each in forms.TYPES if each not in forms.OF_COMMUNITIES)
        raise form_error("type", f"Value must be one of {{{allowed}}}.")
    overwrites = [_overwrite(call, guild, each) for each in form.get("permission_overwrites") or []]
    if (parent_id := form.get("parent_id")) is not None:
        parent = guild.channels.get(parent_id)
        if parent is None:
            raise form_error("parent_id", "Category does not exist")
        if parent.type != forms.CATEGORY or forms.CATEGORY in (kind, channel.type):
            raise form_error("parent_id", "Not a category")
    if form.get("permission_overwrites") is not None:
        channel.overwrites = overwrites
    for name, own in _OWN_NAMES.items():
        if form.get(name) is not None:
            setattr(channel, own, form[name])
    for name in ("topic", "parent_id"):
        if name in form:
            setattr(channel, name, form[name])
    if channel.type in _CALLS:
        given = {name: form[name] for name in ("bitrate", "user_limit") if form.get(name) is not None}
        channel.extras = {**channel.extras, **given}
    if channel.type == 0:
        channel.name = channel.name.lower().replace(" ", "-")


def _overwrite(call: Call, guild: Guild, form: Form) -> Overwrite:
    """Return an overwrite of bits that the bot itself has; Manage Roles needs an administrator."""
    overwrite_id = form["id"]
    kind = int(form.get("type", OF_ROLE if overwrite_id in guild.roles else 1))
    if kind == OF_ROLE and overwrite_id not in guild.roles:
        raise unknown("Role")
    if kind != OF_ROLE and overwrite_id not in call.discord.world.users:
        raise unknown("User")
    allow, deny = form.get("allow", 0), form.get("deny", 0)
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
