"""A command's options as a person fills them in: names to typed values, with what ids resolve to."""

from typing import TYPE_CHECKING, Any

from sandbox.control.body import Body
from sandbox.discord import control, permissions, shapes
from sandbox.discord.entities import Command, Guild, Member
from sandbox.refusal import Refusal

if TYPE_CHECKING:
    from sandbox.discord import Discord

SUB_COMMAND, SUB_COMMAND_GROUP = 1, 2
INTEGER, BOOLEAN, USER, CHANNEL, ROLE, MENTIONABLE, NUMBER = 4, 5, 6, 7, 8, 9, 10
Resolved = dict[str, dict[str, Any]]


def offered(discord: "Discord", guild: Guild, member: Member) -> list[Command]:
    """The commands that Discord's client shows to this member, by name."""
    names = sorted({c.definition["name"] for c in discord.world.commands.values() if c.definition["type"] == 1})
    found: list[Command] = []
    for name in names:
        try:
            found.append(find_command(discord, guild, name))
        except Refusal:
            continue  # another guild's
    return [command for command in found if may_use(guild, member, command)]


def may_use(guild: Guild, member: Member, command: Command) -> bool:
    """Whether the member has the permissions that the command asks for."""
    needed = command.definition.get("default_member_permissions")
    granted = permissions.guild_permissions(guild, member)
    if needed is None or granted & permissions.ADMINISTRATOR:
        return True
    return int(needed) != 0 and not int(needed) & ~granted


def find_command(discord: "Discord", guild: Guild, name: str) -> Command:
    """The command that people of this guild see under the name; the guild's own hides a global one."""
    found = [c for c in discord.world.commands.values() if c.definition["name"] == name and c.definition["type"] == 1]
    for scope in (guild.id, None):
        for command in found:
            if command.guild_id == scope:
                return command
    raise Refusal(404, f"The bot has no command /{name}.")


def chosen_options(
    discord: "Discord", guild: Guild, definition: dict[str, Any], path: list[str], body: Body, completing: bool
) -> tuple[list[dict[str, Any]], Resolved]:
    """The `options` and `resolved` of a command use; `path` names a sub-command. Raises Refusal."""
    offered: list[dict[str, Any]] = definition.get("options", [])
    if offered and offered[0]["type"] in (SUB_COMMAND, SUB_COMMAND_GROUP):
        name = path[0] if path else ""
        inner = next((option for option in offered if option["name"] == name), None)
        if inner is None:
            raise Refusal(404, f"Sub-commands: {', '.join(option['name'] for option in offered)}.")
        options, resolved = chosen_options(discord, guild, inner, path[1:], body, completing)
        return [{"type": inner["type"], "name": name, "options": options}], resolved
    if path:
        raise Refusal(404, f"There is no sub-command {path[0]!r}.")
    given = _given(body)
    unknown = set(given) - {option["name"] for option in offered}
    if unknown:
        raise Refusal(404, f"There is no option {', '.join(sorted(unknown))}.")
    lacking = [option["name"] for option in offered if option.get("required") and option["name"] not in given]
    if lacking and not completing:
        raise Refusal(400, f"Required options are lacking: {', '.join(lacking)}.")
    resolved: Resolved = {}
    options = [
        {"type": option["type"], "name": option["name"], "value": _value(discord, guild, option, given, resolved)}
        for option in offered
        if option["name"] in given
    ]
    if completing and options:
        focused = str(body.get("focused") or list(given)[-1])
        for option in options:
            if option["name"] == focused:
                option["focused"] = True
    return options, resolved


def _given(body: Body) -> dict[str, Any]:
    given = body.get("options") or {}
    if isinstance(given, list):
        return {str(option["name"]): option["value"] for option in given}
    if not isinstance(given, dict):
        raise Refusal(400, "options is an object of names and values.")
    return given


def _value(discord: "Discord", guild: Guild, option: dict[str, Any], given: dict[str, Any], resolved: Resolved) -> Any:
    value, kind = given[option["name"]], option["type"]
    choices = [choice["value"] for choice in option.get("choices", [])]
    if choices and value not in choices:
        # A browser's form writes a number as its digits.
        value = next((choice for choice in choices if str(choice) == value), None)
        if value is None:
            raise Refusal(400, f"{option['name']} is one of: {', '.join(map(str, choices))}.")
    if kind in (USER, MENTIONABLE):
        user = control.find_user(discord, str(value))
        resolved.setdefault("users", {})[user.id] = shapes.user(user)
        if member := guild.members.get(user.id):
            shape = shapes.member(member, user)
            for left_out in ("user", "deaf", "mute"):
                del shape[left_out]
            shape["permissions"] = str(permissions.guild_permissions(guild, member))
            resolved.setdefault("members", {})[user.id] = shape
        return user.id
    if kind == ROLE:
        role = control.find_role(guild, str(value))
        resolved.setdefault("roles", {})[role.id] = shapes.role(role)
        return role.id
    if kind == CHANNEL:
        channel = next((c for c in guild.channels.values() if str(value) in (c.id, c.name)), None)
        if channel is None:
            raise Refusal(404, f"{guild.name} has no channel {value!r}.")
        resolved.setdefault("channels", {})[channel.id] = shapes.channel(channel)
        return channel.id
    if kind == BOOLEAN:
        return value == "true" if isinstance(value, str) else bool(value)
    if kind in (INTEGER, NUMBER):
        return int(value) if kind == INTEGER else float(value)
    return str(value)
