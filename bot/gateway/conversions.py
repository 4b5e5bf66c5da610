"""Convert the Discord library's objects to the product's own facts."""

from typing import Any

import nextcord

from services.guilds.members import MemberFacts, shown_name
from services.triggers import gateway_events
from services.triggers.gateway_events import GuildFacts, RoleFacts


def member_facts(member: nextcord.Member) -> MemberFacts:
    """Return a member's facts, with the name that the guild shows (nextcord 2.6 ignores global names)."""
    return MemberFacts(
        discord_id=str(member.id),
        name=shown_name(member.name, member.global_name, member.nick),
        roles=frozenset(role_ids(member)),
        pending=bool(member.pending),
        avatar=member.avatar.key if member.avatar else None,
        bot=member.bot,
    )


def role_ids(member: nextcord.Member) -> list[str]:
    """Return the ids of a member's roles as Discord says them, without @everyone.

    The library's own list leaves out roles of which it has not learned yet, and fails for a guild that has not arrived.
    """
    found: Any = member._roles  # pyright: ignore[reportPrivateUsage]
    return [str(role_id) for role_id in found]


def admin_roles(guild: nextcord.Guild) -> frozenset[str]:
    """Return the ids of the roles that make their holders administrators."""
    return frozenset(str(role.id) for role in guild.roles if role.permissions.administrator)


def role_giver(tags: nextcord.RoleTags | None) -> str:
    """Return the system that grants a role instead of people; empty if people may grant it."""
    if tags is None:
        return ""
    return gateway_events.giver(
        linked=tags.has_guild_connections(),
        booster=tags.is_premium_subscriber(),
        shop=tags.is_available_for_purchase() or tags.subscription_listing_id is not None,
        bot=tags.is_bot_managed(),
        integration=tags.is_integration(),
    )


def guild_facts(guild: nextcord.Guild) -> GuildFacts:
    """Return a guild with its roles, and the bot as its only member: no other is in the library's cache."""
    return GuildFacts(
        id=str(guild.id),
        name=guild.name,
        icon=guild.icon.key if guild.icon else None,
        owner_id=str(guild.owner_id),
        bot_id=str(guild.me.id),
        roles=tuple(
            RoleFacts(
                str(role.id),
                role.name,
                role.position,
                role.managed,
                role.permissions.value,
                role_giver(role.tags),
                role.color.value,
            )
            for role in guild.roles
        ),
        members=(member_facts(guild.me),),
        member_count=guild.member_count or 0,
    )
