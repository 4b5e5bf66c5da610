"""REST: members and the roles they hold."""

from typing import Any

from sandbox.discord.actions import members
from sandbox.discord.answers.errors import form_error, invalid_role, missing_access, missing_permissions, unknown
from sandbox.discord.answers.limits import MEMBER_ROLE_WRITES
from sandbox.discord.forms import guilds as forms
from sandbox.discord.rest.call import Call, Endpoint
from sandbox.discord.world import audit, intents, permissions, shapes
from sandbox.discord.world.entities import Guild, Member, Role


async def list_members(call: Call) -> list[Any]:
    """Answer GET /guilds/{guild}/members, by user id. The application must have the members intent switched on."""
    guild = call.guild()
    if not call.discord.application.enabled & intents.GUILD_MEMBERS:
        raise missing_access()
    limit, after = call.number("limit", 1, 1, 1000), call.cursor("after") or 0
    found = sorted((m for m in guild.members.values() if int(m.user_id) > after), key=lambda m: int(m.user_id))
    return [_shape(call, member) for member in found[:limit]]


async def search_members(call: Call) -> list[Any]:
    """Answer GET /guilds/{guild}/members/search: names or nicks that begin with the query."""
    guild = call.guild()
    limit = call.number("limit", 1, 1, 1000)
    query = call.request.query.get("query", "").lower()
    if not 1 <= len(query) <= 100:
        raise form_error("query", "This field is required")
    found = [member for member in guild.members.values() if _named(call, member, query)]
    return [_shape(call, member) for member in found[:limit]]


async def get_member(call: Call) -> dict[str, Any]:
    """Answer GET /guilds/{guild}/members/{user}."""
    return _shape(call, call.member(call.guild()))


async def put_role(call: Call) -> None:
    """Answer PUT /guilds/{guild}/members/{user}/roles/{role}."""
    member, role = _assignment(call)
    members.give_role(call.discord, member, role, call.by)


async def delete_role(call: Call) -> None:
    """Answer DELETE /guilds/{guild}/members/{user}/roles/{role}."""
    member, role = _assignment(call)
    members.take_role(call.discord, member, role, call.by)


async def patch_member(call: Call) -> dict[str, Any]:
    """Answer PATCH /guilds/{guild}/members/{user}: roles (the whole set), nick, time-out."""
    guild = call.guild()
    member = call.member(guild)
    form = forms.member(call.form())
    changes: list[str] = []
    wanted = _wanted_roles(call, guild, member, form["roles"]) if form.get("roles") is not None else member.roles
    if "nick" in form:
        _need_over(call, guild, member, permissions.MANAGE_NICKNAMES)
    nick = form["nick"] or None if "nick" in form else member.nick
    timeout = member.timeout_until
    if "communication_disabled_until" in form:
        _need_over(call, guild, member, permissions.MODERATE_MEMBERS)
        timeout = form["communication_disabled_until"]
        if timeout and permissions.guild_permissions(guild, member) & permissions.ADMINISTRATOR:
            raise missing_permissions()
    for name, value in (("roles", wanted), ("nick", nick), ("timeout_until", timeout)):
        if getattr(member, name) != value:
            setattr(member, name, value)
            changes.append(name)
    if changes:
        members.changed(call.discord, member)
        audit.note(call.discord.world, guild.id, call.by, f"changed {', '.join(changes)}", member.user_id)
    return _shape(call, member)


async def patch_own_member(call: Call) -> dict[str, Any]:
    """Answer PATCH /guilds/{guild}/members/@me: the bot's own nick."""
    guild = call.guild()
    member = call.own_member(guild)
    form = forms.member(call.form())
    if "nick" in form:
        call.need(guild, permissions.CHANGE_NICKNAME)
        member.nick = form["nick"] or None
        members.changed(call.discord, member)
    return {**_shape(call, member), "permissions": str(permissions.guild_permissions(guild, member))}


async def kick(call: Call) -> None:
    """Answer DELETE /guilds/{guild}/members/{user}."""
    guild = call.guild()
    member = call.member(guild)
    _need_over(call, guild, member, permissions.KICK_MEMBERS)
    members.leave(call.discord, guild, member)
    audit.note(call.discord.world, guild.id, call.by, "kicked a member", member.user_id)


def _assignment(call: Call) -> tuple[Member, Role]:
    """Return the member and the role of a role write, after all of Discord's checks."""
    guild = call.guild()
    member, role = call.member(guild), call.role(guild)
    _need_grantable(call, guild, role)
    return member, role


def _need_grantable(call: Call, guild: Guild, role: Role) -> None:
    call.need(guild, permissions.MANAGE_ROLES)
    if role.id == guild.id or "guild_connections" in role.tags:
        raise invalid_role()
    if role.managed or not permissions.stands_above(guild, call.own_member(guild), role):
        raise missing_permissions()


def _wanted_roles(call: Call, guild: Guild, member: Member, value: list[str]) -> list[str]:
    wanted = list(dict.fromkeys(value))
    call.need(guild, permissions.MANAGE_ROLES)
    for role_id in wanted:
        if role_id not in guild.roles:
            raise unknown("Role")
    for role_id in set(wanted) ^ set(member.roles):
        _need_grantable(call, guild, guild.roles[role_id])
    return wanted


def _need_over(call: Call, guild: Guild, member: Member, permission: int) -> None:
    call.need(guild, permission)
    own = call.own_member(guild)
    if member.user_id == guild.owner_id and own.user_id != guild.owner_id:
        raise missing_permissions()
    if member is not own and not permissions.stands_above(guild, own, permissions.top_role(guild, member)):
        raise missing_permissions()


def _named(call: Call, member: Member, query: str) -> bool:
    user = call.discord.world.users[member.user_id]
    return any((name or "").lower().startswith(query) for name in (user.username, user.global_name, member.nick))


def _shape(call: Call, member: Member) -> dict[str, Any]:
    return shapes.member(member, call.discord.world.users[member.user_id])


ENDPOINTS = (
    Endpoint("GET", "/guilds/{guild_id}/members", list_members),
    Endpoint("GET", "/guilds/{guild_id}/members/search", search_members),
    Endpoint("PATCH", "/guilds/{guild_id}/members/@me", patch_own_member),
    Endpoint("GET", "/guilds/{guild_id}/members/{user_id}", get_member),
    Endpoint("PATCH", "/guilds/{guild_id}/members/{user_id}", patch_member),
    Endpoint("DELETE", "/guilds/{guild_id}/members/{user_id}", kick),
    Endpoint("PUT", "/guilds/{guild_id}/members/{user_id}/roles/{role_id}", put_role, limit=MEMBER_ROLE_WRITES),
    Endpoint("DELETE", "/guilds/{guild_id}/members/{user_id}/roles/{role_id}", delete_role, limit=MEMBER_ROLE_WRITES),
)
