"""Snapshots of guilds with the facts that the bot needs, stored so that another process can resume a shard."""

import json
from typing import Any

import nextcord

from bot.gateway.conversions import role_ids


def guild_snapshot(guild: nextcord.Guild) -> str:
    """Return a guild as JSON in the form of the event that announces it, without fields that the bot does not need."""
    return json.dumps(
        {
            "id": str(guild.id),
            "name": guild.name,
            "icon": guild.icon.key if guild.icon else None,
            "owner_id": str(guild.owner_id),
            "features": list(guild.features),
            "preferred_locale": str(guild.preferred_locale) if guild.preferred_locale else None,
            "member_count": guild.member_count,
            "roles": [_role(role) for role in guild.roles],
            "members": [_own(guild.me)],
            "unavailable": False,
        },
        separators=(",", ":"),
    )


def _role(role: nextcord.Role) -> dict[str, Any]:
    shown = {
        "id": str(role.id), "name": role.name, "permissions": str(role.permissions.value), "position": role.position,
        "color": role.color.value, "hoist": role.hoist, "managed": role.managed, "mentionable": role.mentionable,
    }  # fmt: skip
    return {**shown, "tags": _tags(role.tags)} if role.tags is not None else shown


def _tags(tags: nextcord.RoleTags) -> dict[str, Any]:
    ids = {
        "bot_id": tags.bot_id, "integration_id": tags.integration_id,
        "subscription_listing_id": tags.subscription_listing_id,
    }  # fmt: skip
    # In Discord's JSON, these tags are true if they are present.
    present = {
        "premium_subscriber": tags.is_premium_subscriber(),
        "available_for_purchase": tags.is_available_for_purchase(),
        "guild_connections": tags.has_guild_connections(),
    }
    found: dict[str, Any] = {name: str(value) for name, value in ids.items() if value is not None}
    return found | {name: None for name, holds in present.items() if holds}


def _own(member: nextcord.Member) -> dict[str, Any]:
    user = {
        "id": str(member.id), "username": member.name, "discriminator": str(member.discriminator),
        "avatar": member.avatar.key if member.avatar else None, "global_name": member.global_name, "bot": True,
    }  # fmt: skip
    return {
        "user": user,
        "nick": member.nick,
        "roles": role_ids(member),
        "pending": bool(member.pending),
        "joined_at": member.joined_at.isoformat() if member.joined_at else None,
        "flags": 0,
    }
