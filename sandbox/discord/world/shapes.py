"""How entities look on the wire (docs/facts.md#discord-api-description)."""

from typing import Any

from sandbox.discord.world.entities import Channel, Command, Guild, Member, Message, Overwrite, Role, User
from sandbox.discord.world.permissions import ascending, guild_permissions

Json = dict[str, Any]


def user(user: User) -> Json:
    """Return a UserResponse."""
    shape: Json = {
        "id": user.id,
        "username": user.username,
        "discriminator": "4711" if user.bot else "0",
        "global_name": user.global_name,
        "avatar": user.avatar,
        "public_flags": 0,
        "flags": 0,
        "banner": None,
        "accent_color": None,
        "avatar_decoration_data": None,
        "collectibles": None,
        "primary_guild": None,
    }
    return {**shape, "bot": True} if user.bot else shape


def me(account: User) -> Json:
    """Return a UserPIIResponse, without the e-mail, which nobody here asks for."""
    shape = {**user(account), "mfa_enabled": True, "locale": "en-US", "premium_type": 0}
    return {**shape, "verified": True, "email": None} if account.bot else shape


def role(role: Role) -> Json:
    """Return a GuildRoleResponse."""
    shape: Json = {
        "id": role.id,
        "name": role.name,
        "permissions": str(role.permissions),
        "position": role.position,
        "color": role.color,
        "colors": {"primary_color": role.color, "secondary_color": None, "tertiary_color": None},
        "hoist": role.hoist,
        "managed": role.managed,
        "mentionable": role.mentionable,
        "icon": None,
        "unicode_emoji": None,
        "flags": 0,
        **role.extras,
    }
    tags: Json = {**({"bot_id": role.bot_id} if role.bot_id else {}), **role.tags}
    return {**shape, "tags": tags} if tags else shape


def roles(guild: Guild) -> list[Json]:
    """Return all roles from the bottom."""
    return [role(each) for each in ascending(guild)]


def member(member: Member, account: User) -> Json:
    """Return a GuildMemberResponse."""
    return {
        "user": user(account),
        "nick": member.nick,
        "avatar": None,
        "banner": None,
        "roles": list(member.roles),
        "joined_at": member.joined_at,
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "flags": 0,
        "pending": member.pending,
        "communication_disabled_until": member.timeout_until,
        "avatar_decoration_data": None,
        "collectibles": None,
        **member.extras,
    }


def my_guild(guild: Guild, member: Member, with_counts: bool) -> Json:
    """Return a MyGuildResponse: the guild as in the list of one of its members."""
    shape: Json = {
        "id": guild.id,
        "name": guild.name,
        "icon": guild.icon,
        "banner": None,
        "owner": guild.owner_id == member.user_id,
        "permissions": str(guild_permissions(guild, member)),
        "features": guild.extras.get("features", []),
    }
    return {**shape, **counts(guild)} if with_counts else shape


def counts(guild: Guild) -> Json:
    """Return the number of members, and of those who would be seen online."""
    return {"approximate_member_count": member_count(guild), "approximate_presence_count": 1}


def member_count(guild: Guild) -> int:
    """Return the number of members that Discord reports for a guild."""
    return guild.live.get("member_count", len(guild.members))


def guild(guild: Guild) -> Json:
    """Return a GuildResponse."""
    return {
        "id": guild.id,
        "name": guild.name,
        "icon": guild.icon,
        "description": None,
        "home_header": None,
        "splash": None,
        "discovery_splash": None,
        "features": [],
        "banner": None,
        "owner_id": guild.owner_id,
        "application_id": None,
        "region": "deprecated",
        "afk_channel_id": None,
        "afk_timeout": 300,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "widget_enabled": False,
        "widget_channel_id": None,
        "verification_level": 1,
        "roles": roles(guild),
        "default_message_notifications": 1,
        "mfa_level": 0,
        "explicit_content_filter": 0,
        "max_presences": None,
        "max_members": 500000,
        "max_stage_video_channel_users": 50,
        "max_video_channel_users": 25,
        "vanity_url_code": None,
        "premium_tier": 0,
        "premium_subscription_count": 0,
        "preferred_locale": "en-US",
        "rules_channel_id": None,
        "safety_alerts_channel_id": None,
        "public_updates_channel_id": None,
        "premium_progress_bar_enabled": False,
        "nsfw": False,
        "nsfw_level": 0,
        "emojis": [],
        "stickers": [],
        "incidents_data": None,
        **guild.extras,
    }


def overwrite(overwrite: Overwrite) -> Json:
    """Return a ChannelPermissionOverwriteResponse."""
    return {"id": overwrite.id, "type": overwrite.type, "allow": str(overwrite.allow), "deny": str(overwrite.deny)}


_NOT_OF_A_CATEGORY = ("topic", "nsfw", "rate_limit_per_user", "last_message_id")
_NOT_OF_A_CALL = ("topic",)


def channel(channel: Channel) -> Json:
    """Return a GuildChannelResponse; a category and a voice channel lack the fields that they cannot have."""
    shape: Json = {
        "id": channel.id,
        "type": channel.type,
        "guild_id": channel.guild_id,
        "name": channel.name,
        "position": channel.position,
        "topic": channel.topic,
        "nsfw": channel.nsfw,
        "parent_id": channel.parent_id,
        "rate_limit_per_user": channel.slowmode,
        "last_message_id": channel.last_message_id,
        "permission_overwrites": [overwrite(each) for each in channel.overwrites],
        "flags": 0,
        **channel.extras,
    }
    lacking = {2: _NOT_OF_A_CALL, 4: _NOT_OF_A_CATEGORY}.get(channel.type, ())
    return {name: value for name, value in shape.items() if name not in lacking}


def message(message: Message, author: User) -> Json:
    """Return a MessageResponse."""
    shape: Json = {
        "id": message.id,
        "channel_id": message.channel_id,
        "type": message.type,
        "author": user(author),
        "content": message.content,
        "embeds": message.embeds,
        "components": message.components,
        "attachments": [],
        "mentions": message.mentions,
        "mention_roles": message.mention_roles,
        "mention_everyone": message.mention_everyone,
        "pinned": False,
        "tts": False,
        "flags": message.flags,
        "timestamp": message.timestamp,
        "edited_timestamp": message.edited_timestamp,
    }
    if message.webhook_id:
        shape |= {"webhook_id": message.webhook_id, "application_id": message.webhook_id}
    if message.nonce is not None:
        shape["nonce"] = message.nonce
    if message.replies_to is not None:
        shape["message_reference"] = {"type": 0, "channel_id": message.channel_id, "message_id": message.replies_to}
    return shape


def command(command: Command, application_id: str) -> Json:
    """Return an ApplicationCommandResponse."""
    shape: Json = {"id": command.id, "application_id": application_id, "version": command.version, **command.definition}
    return {**shape, "guild_id": command.guild_id} if command.guild_id else shape


def application(application_id: str, bot: User, flags: int) -> Json:
    """Return the public part of a PrivateApplicationResponse."""
    return {
        "id": application_id,
        "name": bot.username,
        "icon": None,
        "description": "",
        "summary": "",  # empty, and present until v11: older clients require it
        "type": None,
        "verify_key": "0" * 64,
        "flags": flags,
        "flags_new": str(flags),
        "bot_public": True,
        "bot_require_code_grant": False,
        "bot": user(bot),
    }


def own_application(application_id: str, flags: int) -> Json:
    """Return the application as in READY."""
    return {"id": application_id, "flags": flags, "flags_new": str(flags)}
