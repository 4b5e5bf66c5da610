"""`/control/guilds`, `…/members`, `…/people`, `…/messages`: actions in Discord, for programs."""

from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from sandbox.base.body import Body, fields, flag, is_whole, number, optional_text, text
from sandbox.base.refusal import Refusal
from sandbox.discord import LocalDiscord
from sandbox.discord.actions import bots, members, messages, restore, rich_guild, roles
from sandbox.discord.actions.roles import RoleEdit
from sandbox.discord.control import interactions
from sandbox.discord.interactions import command_options
from sandbox.discord.world import intents, seed, shapes
from sandbox.discord.world.audit import By
from sandbox.discord.world.entities import Guild, Member, User
from sandbox.discord.world.lookup import find_guild, find_member, find_role, find_user
from sandbox.discord.world.seed import BOT_PERMISSIONS

MOST_OF_A_CROWD = 20_000
"""The most members that one call adds, so that other callers do not wait long."""
LONGEST_NICK = LONGEST_USERNAME = 32
LONGEST_ROLE_NAME = LONGEST_GUILD_NAME = 100
NOT_EVERYONE = "@everyone stays at position 0, and every other role above it."


def routes(discord: LocalDiscord) -> Sequence[web.AbstractRouteDef]:
    """Return the routes of Discord's control calls.

    A change answers with an empty object, or with the ids or the person that it made. A single guild has the same form
    as in the whole world.
    """

    async def guild(request: web.Request) -> web.Response:
        return web.json_response(discord.guild_view(find_guild(discord, request.match_info["guild"])))

    def change(path: str, carry_out: Callable[[LocalDiscord, Body], dict[str, Any]]) -> web.RouteDef:
        async def act(request: web.Request) -> web.Response:
            return web.json_response(carry_out(discord, await fields(request)))

        return web.post(path, act)

    return [
        web.get("/control/guilds/{guild}", guild),
        change("/control/messages", speak),
        change("/control/guilds", change_guild),
        change("/control/members", change_member),
        change("/control/people", make_person),
        *interactions.routes(discord),
    ]


def change_guild(discord: LocalDiscord, body: Body) -> dict[str, str]:
    """Do what the guild's owner could do to it. Raises Refusal."""
    if body.get("action") == "create":
        return {"id": _make_guild(discord, body).id}
    guild = find_guild(discord, text(body, "guild"))
    by = By(guild.owner_id)
    match text(body, "action"):
        case "add_bot":
            place = int(number(body, "position")) if "position" in body else None
            if place is not None and not 1 <= place <= len(guild.roles):
                raise Refusal(400, f"position is between 1 and {len(guild.roles)}.")
            bots.add(discord, guild, _permissions(body, BOT_PERMISSIONS), by, position=place)
        case "populate":
            return _populate(discord, guild, body)
        case "enrich":
            rich_guild.enrich(discord, guild, by, _member_count(body))
        case "edit_guild":
            _edit_guild(discord, guild, body)
        case "kick_bot":
            if discord.bot_id not in guild.members:
                raise Refusal(404, f"The bot is not in {guild.name}.")
            bots.remove(discord, guild, by)
        case "add_role":
            edit = RoleEdit(_short(body, "name", LONGEST_ROLE_NAME), _permissions(body, 0), tags=_tags(body))
            position = _position(body) if "position" in body else None
            role = roles.create(discord, guild, edit, by)
            if position is not None:
                roles.move(discord, guild, {role.id: position}, by)
            return {"id": role.id}
        case "edit_role":
            role = find_role(guild, text(body, "role"))
            permissions = _permissions(body, role.permissions)
            name = _short(body, "name", LONGEST_ROLE_NAME) if body.get("name") is not None else None
            if name is not None and role.id == guild.id:
                raise Refusal(400, "@everyone keeps its name.")
            roles.change(discord, role, RoleEdit(name, permissions, tags=_tags(body)), by)
        case "delete_role":
            role = find_role(guild, text(body, "role"))
            if role.managed or role.id == guild.id:
                raise Refusal(400, f"Discord does not delete {role.name}.")
            roles.delete(discord, guild, role, by)
        case "move_role":
            role = find_role(guild, text(body, "role"))
            if role.id == guild.id:
                raise Refusal(400, NOT_EVERYONE)
            roles.move(discord, guild, {role.id: _position(body)}, by)
        case "offer_command":
            _offer(discord, guild, body)
        case action:
            raise Refusal(400, f"There is no guild action {action!r}.")
    return {}


def _position(body: Body) -> int:
    position = int(number(body, "position"))
    if position < 1:
        raise Refusal(400, NOT_EVERYONE)
    return position


def _populate(discord: LocalDiscord, guild: Guild, body: Body) -> dict[str, str]:
    """Add members who never sign in: `{count}` → `{first, last}`, whose ids are in a row."""
    count = number(body, "count")
    if count != int(count) or not 1 <= count <= MOST_OF_A_CROWD:
        raise Refusal(400, f"count is between 1 and {MOST_OF_A_CROWD}; ask again for more.")
    first, last = members.populate(discord, guild, int(count))
    return {"first": first, "last": last}


def _edit_guild(discord: LocalDiscord, guild: Guild, body: Body) -> None:
    """Change the name or the owner: `{name?, owner?}`; the owner must be a member already."""
    name = _short(body, "name", LONGEST_GUILD_NAME) if body.get("name") is not None else None
    if name is not None and any(other.name == name for other in discord.world.guilds.values() if other is not guild):
        raise Refusal(409, f"There is a guild {name!r} already.")
    if (owner := optional_text(body, "owner")) is not None:
        guild.owner_id = find_member(guild, _owner(discord, owner)).user_id
    guild.name = name or guild.name
    discord.world.save(guild)
    discord.gateway.dispatch(guild.id, "GUILD_UPDATE", shapes.guild(guild), intents.GUILDS)


def _offer(discord: LocalDiscord, guild: Guild, body: Body) -> None:
    """Let a role or a member see a command, or not: `{name, to, allowed}`.

    The server's Integrations settings do the same. The bot itself must check who may do what the command does.
    """
    command = command_options.find_command(discord, guild, text(body, "name").removeprefix("/"))
    wanted = text(body, "to")
    is_role = any(wanted in (role.id, role.name) for role in guild.roles.values())
    to = find_role(guild, wanted).id if is_role else find_member(guild, find_user(discord, wanted)).user_id
    guild.offers.setdefault(command.id, {})[to] = flag(body, "allowed")
    discord.world.save(guild)


def speak(discord: LocalDiscord, body: Body) -> dict[str, str]:
    """Write a message as a member: `{guild, channel?, user, content}` → `{id}`. Raises Refusal."""
    guild = find_guild(discord, text(body, "guild"))
    member = find_member(guild, find_user(discord, text(body, "user")))
    wanted = optional_text(body, "channel")
    places = [one for one in guild.channels.values() if wanted in (None, one.id, one.name) and one.type in (0, 5)]
    if not places:
        raise Refusal(404, f"{guild.name} has no such text channel.")
    return {"id": messages.say(discord, guild, places[0], member, text(body, "content")).id}


def make_person(discord: LocalDiscord, body: Body) -> dict[str, Any]:
    """Make a person who is in no guild: `{username, bot?}` → `{id, username, wallets}`.

    With `bot: true` it is another application's bot. Raises Refusal(409) for a name that is taken.
    """
    username, is_bot = _short(body, "username", LONGEST_USERNAME), flag(body, "bot", False)
    if discord.user_called(username) is not None:
        raise Refusal(409, f"Somebody is called {username!r} already.")
    user = User(discord.world.ids.next(), username, None if is_bot else username.capitalize(), None, bot=is_bot)
    discord.world.save(user)
    return discord.person_view(user)


def _make_guild(discord: LocalDiscord, body: Body) -> Guild:
    """Make a guild with the usual roles: `{guild: its name, owner, admins?, members?: [user], rich?: true}`."""
    name, owner = _short(body, "guild", LONGEST_GUILD_NAME), _owner(discord, text(body, "owner"))
    if any(guild.name == name for guild in discord.world.guilds.values()):
        raise Refusal(409, f"There is a guild {name!r} already.")
    admins, others = (_people(discord, body, key) for key in ("admins", "members"))
    ids = iter(discord.world.ids.next, None)
    guild = seed.furnished(discord.world.ids.next(), name, None, owner.id, admins, others, ids)
    restore.plant(discord, guild)
    if body.get("rich") is True:
        rich_guild.enrich(discord, guild, By(guild.owner_id), _member_count(body))
    return guild


def _people(discord: LocalDiscord, body: Body, field: str) -> list[str]:
    given: Any = body.get(field) or []
    if not isinstance(given, list):
        raise Refusal(400, f"{field} is a list of people.")
    return [find_user(discord, str(who)).id for who in given]


def _owner(discord: LocalDiscord, wanted: str) -> User:
    if (owner := find_user(discord, wanted)).bot:
        raise Refusal(400, "A bot owns no server.")
    return owner


def _member_count(body: Body) -> int | None:
    """Return the size that Discord reports for a guild, if it is to differ from the true one."""
    return int(number(body, "member_count")) if "member_count" in body else None


def change_member(discord: LocalDiscord, body: Body) -> dict[str, Any]:
    """Do something to or as a member. Raises Refusal.

    `by` names the person who gives or takes a role; by default it is the owner. With `bot: true`, `join` first makes
    another application's bot of that name, if there is none, and returns it; with `pending: true` the newcomer has
    not passed the membership screening yet.
    """
    guild, name = find_guild(discord, text(body, "guild")), text(body, "user")
    if body.get("action") == "join":
        return _join(discord, guild, name, body)
    user, actor = find_user(discord, name), optional_text(body, "by")
    by, action = By(guild.owner_id if actor is None else find_user(discord, actor).id), text(body, "action")
    member = find_member(guild, user)
    match action:
        case "leave":
            if user.id == guild.owner_id:
                raise Refusal(400, "An owner cannot leave their own server.")
            ours = user.id == discord.bot_id
            bots.remove(discord, guild, by) if ours else members.leave(discord, guild, member)
        case "add_role" | "remove_role":
            role = find_role(guild, text(body, "role"))
            if role.is_given_by_discord or role.id == guild.id:
                raise Refusal(400, f"Discord does not let anybody give or take {role.name}.")
            (members.give_role if action == "add_role" else members.take_role)(discord, member, role, by)
        case "rename":
            _rename(discord, user, _short(body, "name", LONGEST_USERNAME))
        case "rename_nick":
            _rename_nick(discord, member, _short(body, "name", LONGEST_NICK) if body.get("name") else None)
        case "set_pending":
            member.pending = flag(body, "pending")
            members.changed(discord, member)
        case _:
            raise Refusal(400, f"There is no member action {action!r}.")
    return {}


def _join(discord: LocalDiscord, guild: Guild, name: str, body: Body) -> dict[str, Any]:
    is_bot, pending = flag(body, "bot", False), flag(body, "pending", False)
    if is_bot and discord.user_called(name) is None:
        made = make_person(discord, {"username": name, "bot": True})
        members.join(discord, guild, find_user(discord, made["id"]))
        return made
    user = find_user(discord, name)
    if user.id == discord.bot_id:
        raise Refusal(400, "The product's bot joins by an invite: the guild action add_bot.")
    if is_bot and not user.bot:
        raise Refusal(409, f"{user.username} is a person.")
    if user.id in guild.members:
        raise Refusal(409, f"{user.username} is in {guild.name} already.")
    members.join(discord, guild, user, pending=pending)
    return {}


def _rename(discord: LocalDiscord, user: User, name: str) -> None:
    """Change the username. Control calls still find a person by the username at the start too."""
    if any(other.username == name for other in discord.world.users.values() if other is not user):
        raise Refusal(409, f"Somebody is called {name!r} already.")
    user.username = name
    members.user_changed(discord, user)


def _rename_nick(discord: LocalDiscord, member: Member, name: str | None) -> None:
    """Give a member a nickname in the guild, or none."""
    member.nick = name
    members.changed(discord, member)


def _short(body: Body, field: str, most: int) -> str:
    """Return a required text. Raises Refusal(400), also if Discord refuses it as too long."""
    name = text(body, field)
    if len(name) > most:
        raise Refusal(400, f"{field} has at most {most} characters.")
    return name


def _tags(body: Body) -> dict[str, str | None] | None:
    """Return a role's tags as Discord writes them: an id, or null for a tag that is simply true."""
    tags = body.get("tags")
    if tags is None:
        return None
    if not isinstance(tags, dict) or not roles.TAGS.issuperset(tags):
        raise Refusal(400, f"tags is an object with any of: {', '.join(sorted(roles.TAGS))}.")
    if not all(value is None or (isinstance(value, str) and is_whole(value)) for value in tags.values()):
        raise Refusal(400, "A tag is an id as text, or null.")
    return dict(tags)


def _permissions(body: Body, default: int) -> int:
    value = body.get("permissions", default)
    if isinstance(value, str) and is_whole(value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refusal(400, "permissions is a number, or its digits as text.")
    return value
