"""REST: a guild and its roles, with Discord's permissions and hierarchy."""

from collections import Counter
from typing import Any

from sandbox.discord.actions import roles
from sandbox.discord.actions.roles import RoleEdit
from sandbox.discord.answers.errors import DiscordError, missing_permissions, unknown
from sandbox.discord.answers.limits import NEW_ROLES
from sandbox.discord.forms import guilds as forms
from sandbox.discord.forms.schema import Form
from sandbox.discord.rest.call import Call, Endpoint
from sandbox.discord.world import permissions, shapes
from sandbox.discord.world.entities import Guild, Role

MOST_ROLES = 250


async def get_guild(call: Call) -> dict[str, Any]:
    """Answer GET /guilds/{guild}.

    Only this call answers 10004 for a guild that the bot is not in, as if the guild did not exist. See
    docs/facts.md#discord-error-codes.
    """
    try:
        guild = call.guild()
    except DiscordError as error:
        raise (unknown("Guild") if error.status == 403 else error) from None
    return {**shapes.guild(guild), **(shapes.counts(guild) if call.switch("with_counts") else {})}


async def get_roles(call: Call) -> list[Any]:
    """Answer GET /guilds/{guild}/roles."""
    return shapes.roles(call.guild())


async def get_role(call: Call) -> dict[str, Any]:
    """Answer GET /guilds/{guild}/roles/{role}."""
    return shapes.role(call.role(call.guild()))


async def get_member_counts(call: Call) -> dict[str, Any]:
    """Answer GET /guilds/{guild}/roles/member-counts, without @everyone."""
    guild = call.guild()
    held = Counter(role_id for member in guild.members.values() for role_id in member.roles)
    return {role_id: held[role_id] for role_id in guild.roles if role_id != guild.id}


async def post_role(call: Call) -> dict[str, Any]:
    """Answer POST /guilds/{guild}/roles."""
    guild = call.guild()
    call.need(guild, permissions.MANAGE_ROLES)
    if len(guild.roles) >= MOST_ROLES:
        raise DiscordError(400, 30005, f"Maximum number of guild roles reached ({MOST_ROLES})")
    return shapes.role(roles.create(call.discord, guild, _edit(call, guild, forms.role(call.form())), call.by))


async def patch_role(call: Call) -> dict[str, Any]:
    """Answer PATCH /guilds/{guild}/roles/{role}."""
    guild = call.guild()
    call.need(guild, permissions.MANAGE_ROLES)
    role = call.role(guild)
    _need_above(call, guild, role)
    roles.change(call.discord, role, _edit(call, guild, forms.role(call.form())), call.by)
    return shapes.role(role)


async def delete_role(call: Call) -> None:
    """Answer DELETE /guilds/{guild}/roles/{role}."""
    guild = call.guild()
    call.need(guild, permissions.MANAGE_ROLES)
    role = call.role(guild)
    _need_above(call, guild, role)
    if role.managed or role.id == guild.id:
        raise DiscordError(400, 50028, "Invalid Role")
    roles.delete(call.discord, guild, role, call.by)


async def patch_positions(call: Call) -> list[Any]:
    """Answer PATCH /guilds/{guild}/roles: `[{id, position}]`.

    Some clients name every role, so only the order counts: the bot's highest role and all roles above it must keep
    their places.
    """
    guild = call.guild()
    call.need(guild, permissions.MANAGE_ROLES)
    positions: dict[str, int] = {}
    for item in forms.positions(call.body):
        role_id, position = item["id"], item.get("position")
        if role_id not in guild.roles:
            raise unknown("Role")
        if role_id == guild.id:
            if position:
                raise missing_permissions()
        elif position is not None:
            positions[role_id] = position
    before, after = roles.arranged(guild, {}), roles.arranged(guild, positions)
    own = before.index(permissions.top_role(guild, call.own_member(guild)))
    if after[own:] != before[own:]:
        raise missing_permissions()
    if any(role.position != position for position, role in enumerate(after, start=1)):
        roles.move(call.discord, guild, positions, call.by)
    return shapes.roles(guild)


def _need_above(call: Call, guild: Guild, role: Role) -> None:
    if not permissions.stands_above(guild, call.own_member(guild), role):
        raise missing_permissions()


def _edit(call: Call, guild: Guild, form: Form) -> RoleEdit:
    """Return the fields of a role; permissions that the bot lacks cannot be given to one."""
    own = permissions.guild_permissions(guild, call.own_member(guild))
    wanted = form.get("permissions")
    if wanted is not None and wanted & ~own:
        raise missing_permissions()
    color = form.get("colors", {}).get("primary_color", form.get("color"))
    return RoleEdit(form.get("name"), wanted, color, form.get("hoist"), form.get("mentionable"))


ENDPOINTS = (
    Endpoint("GET", "/guilds/{guild_id}", get_guild),
    Endpoint("GET", "/guilds/{guild_id}/roles", get_roles),
    Endpoint("POST", "/guilds/{guild_id}/roles", post_role, limit=NEW_ROLES),
    Endpoint("PATCH", "/guilds/{guild_id}/roles", patch_positions),
    Endpoint("GET", "/guilds/{guild_id}/roles/member-counts", get_member_counts),
    Endpoint("GET", "/guilds/{guild_id}/roles/{role_id}", get_role),
    Endpoint("PATCH", "/guilds/{guild_id}/roles/{role_id}", patch_role),
    Endpoint("DELETE", "/guilds/{guild_id}/roles/{role_id}", delete_role),
)
