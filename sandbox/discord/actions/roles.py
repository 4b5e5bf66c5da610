"""What can happen to a guild's roles. No permissions are checked here."""

from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.discord.world import audit, intents, shapes
from sandbox.discord.world.audit import By
from sandbox.discord.world.entities import Guild, Role
from sandbox.discord.world.permissions import ascending
from sandbox.discord.world.protocols import Discord


@dataclass
class RoleEdit:
    """New values for a role; None leaves a value as it is."""

    name: str | None = None
    permissions: int | None = None
    color: int | None = None
    hoist: bool | None = None
    mentionable: bool | None = None
    tags: dict[str, str | None] | None = None


TAGS = {
    "integration_id",
    "subscription_listing_id",
    "premium_subscriber",
    "available_for_purchase",
    "guild_connections",
}
"""The tags of roles that Discord or an integration gives. A role with only the Linked Role's tag stays unmanaged."""


def create(discord: Discord, guild: Guild, edit: RoleEdit, by: By, role_id: str | None = None) -> Role:
    """Make a role at position 1, where it may tie with another until roles are next sorted, as on Discord."""
    permissions = guild.everyone.permissions if edit.permissions is None else edit.permissions
    role = Role(role_id or discord.world.ids.next(), guild.id, "new role", permissions, 1)
    _apply(role, edit)
    discord.world.save(role)
    _tell(discord, "GUILD_ROLE_CREATE", role)
    audit.note(discord.world, guild.id, by, f"created the role {role.name}", role.id)
    return role


def change(discord: Discord, role: Role, edit: RoleEdit, by: By) -> None:
    """Change a role's own values."""
    _apply(role, edit)
    discord.world.save(role)
    _tell(discord, "GUILD_ROLE_UPDATE", role)
    audit.note(discord.world, role.guild_id, by, f"changed the role {role.name}", role.id)


def delete(discord: Discord, guild: Guild, role: Role, by: By) -> None:
    """Delete a role, also from members and from channels' overwrites. Only the role's deletion is an event."""
    holders = [member for member in guild.members.values() if role.id in member.roles]
    for member in holders:
        member.roles.remove(role.id)
    touched = [c for c in guild.channels.values() if any(o.id == role.id for o in c.overwrites)]
    for channel in touched:
        channel.overwrites = [o for o in channel.overwrites if o.id != role.id]
    discord.world.save(*holders, *touched)
    discord.world.remove(role)
    event = {"guild_id": guild.id, "role_id": role.id}
    discord.gateway.dispatch(guild.id, "GUILD_ROLE_DELETE", event, intents.GUILDS)
    audit.note(discord.world, guild.id, by, f"deleted the role {role.name}", role.id)


def move(discord: Discord, guild: Guild, positions: Mapping[str, int], by: By) -> None:
    """Put roles at positions (1 is just above @everyone); all others keep their order and get new numbers."""
    for position, role in enumerate(arranged(guild, positions), start=1):
        if role.position != position:
            role.position = position
            discord.world.save(role)
            _tell(discord, "GUILD_ROLE_UPDATE", role)
    audit.note(discord.world, guild.id, by, "moved roles", guild.id)


def arranged(guild: Guild, positions: Mapping[str, int]) -> list[Role]:
    """Return the roles from the bottom, without @everyone, in the order that these new positions give."""
    order = [role for role in ascending(guild) if role.id not in positions and role.id != guild.id]
    for role_id, position in sorted(positions.items(), key=lambda item: item[1]):
        order.insert(max(0, position - 1), guild.roles[role_id])
    return order


def _apply(role: Role, edit: RoleEdit) -> None:
    for name in ("name", "permissions", "color", "hoist", "mentionable"):
        value = getattr(edit, name)
        if value is not None:
            setattr(role, name, value)
    if edit.tags is not None:
        role.tags = edit.tags
        role.managed = role.bot_id is not None or bool(edit.tags.keys() - {"guild_connections"})


def _tell(discord: Discord, event: str, role: Role) -> None:
    data = {"guild_id": role.guild_id, "role": shapes.role(role)}
    discord.gateway.dispatch(role.guild_id, event, data, intents.GUILDS)
