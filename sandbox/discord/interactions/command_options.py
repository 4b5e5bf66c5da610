"""A command's options as a person fills them in: names to typed values, with the objects that ids refer to."""

from typing import Any

from sandbox.base.body import GREATEST, Body
from sandbox.base.refusal import Refusal
from sandbox.discord.interactions.resolving import Resolving
from sandbox.discord.world import permissions
from sandbox.discord.world.entities import Command, Guild, Member
from sandbox.discord.world.protocols import Discord

LONGEST = 6_000
"""The most characters of a text that an option takes."""
SUB_COMMAND, SUB_COMMAND_GROUP = 1, 2
STRING, INTEGER, BOOLEAN, USER, CHANNEL, ROLE, MENTIONABLE, NUMBER = 3, 4, 5, 6, 7, 8, 9, 10


def offered(discord: Discord, guild: Guild, member: Member) -> list[Command]:
    """Return the commands that Discord's client shows to this member, sorted by name."""
    names = sorted({c.definition["name"] for c in discord.world.commands.values() if c.definition["type"] == 1})
    found: list[Command] = []
    for name in names:
        try:
            found.append(find_command(discord, guild, name))
        except Refusal:
            continue  # a command of another guild
    return [command for command in found if may_use(guild, member, command)]


def may_use(guild: Guild, member: Member, command: Command) -> bool:
    """Return whether Discord lets the member use the command.

    Administrators may. For others the choice of the server's admins decides, and without one the permissions that the
    command asks for (facts: application command permissions).
    """
    needed = command.definition.get("default_member_permissions")
    granted = permissions.guild_permissions(guild, member)
    if granted & permissions.ADMINISTRATOR:
        return True
    chosen = guild.offers.get(command.id, {})
    if member.user_id in chosen:
        return chosen[member.user_id]
    of_roles = [chosen[role_id] for role_id in member.roles if role_id in chosen]
    if of_roles or guild.id in chosen:
        return any(of_roles) if of_roles else chosen[guild.id]
    return needed is None or (int(needed) != 0 and not int(needed) & ~granted)


def find_command(discord: Discord, guild: Guild, name: str) -> Command:
    """Return the command that people of this guild see under the name; the guild's own hides a global one."""
    found = [c for c in discord.world.commands.values() if c.definition["name"] == name and c.definition["type"] == 1]
    for scope in (guild.id, None):
        for command in found:
            if command.guild_id == scope:
                return command
    raise Refusal(404, f"The bot has no command /{name}.")


def chosen_options(
    definition: dict[str, Any], path: list[str], body: Body, completing: bool, resolving: Resolving
) -> list[dict[str, Any]]:
    """Return the `options` of a command use; `path` names a sub-command. Raises Refusal."""
    offered: list[dict[str, Any]] = definition.get("options", [])
    if offered and offered[0]["type"] in (SUB_COMMAND, SUB_COMMAND_GROUP):
        name = path[0] if path else ""
        inner = next((option for option in offered if option["name"] == name), None)
        if inner is None:
            raise Refusal(404, f"Sub-commands: {', '.join(option['name'] for option in offered)}.")
        options = chosen_options(inner, path[1:], body, completing, resolving)
        return [{"type": inner["type"], "name": name, "options": options}]
    if path:
        raise Refusal(404, f"There is no sub-command {path[0]!r}.")
    given = _given(body)
    unknown = set(given) - {option["name"] for option in offered}
    if unknown:
        raise Refusal(404, f"There is no option {', '.join(sorted(unknown))}.")
    lacking = [option["name"] for option in offered if option.get("required") and option["name"] not in given]
    if lacking and not completing:
        raise Refusal(400, f"Required options are lacking: {', '.join(lacking)}.")
    options = [
        {"type": option["type"], "name": option["name"], "value": _value(option, given, completing, resolving)}
        for option in offered
        if option["name"] in given
    ]
    if completing:
        focused = str(body.get("focused") or next(reversed(given), ""))
        if focused not in given or not _is_completed(offered, focused):
            raise Refusal(400, f"Discord asks for no suggestions for the option {focused!r}.")
        for option in options:
            if option["name"] == focused:
                option["focused"] = True
                if option["type"] in (INTEGER, NUMBER):
                    option["value"] = str(given[focused])  # what was typed so far, whatever it is
    return options


def _is_completed(offered: list[dict[str, Any]], name: str) -> bool:
    return any(option["name"] == name and option.get("autocomplete") is True for option in offered)


def _given(body: Body) -> dict[str, Any]:
    given = body.get("options") or {}
    if isinstance(given, list) and all(isinstance(one, dict) and {"name", "value"} <= one.keys() for one in given):
        return {str(option["name"]): option["value"] for option in given}
    if not isinstance(given, dict):
        raise Refusal(400, "options is an object of names and values, or a list of {name, value}.")
    return given


def _value(option: dict[str, Any], given: dict[str, Any], completing: bool, resolving: Resolving) -> Any:
    """Return the value as Discord's client sends it, which keeps a text or a number within the option's limits.

    While a person types, the client sends what there is so far.
    """
    value, kind = given[option["name"]], option["type"]
    choices = [choice["value"] for choice in option.get("choices", [])]
    if choices and value not in choices:
        # A browser's form sends a number as its digits.
        value = next((choice for choice in choices if str(choice) == value), None)
        if value is None:
            raise Refusal(400, f"{option['name']} is one of: {', '.join(map(str, choices))}.")
    named = {USER: resolving.user, CHANNEL: resolving.channel, ROLE: resolving.role, MENTIONABLE: resolving.mentionable}
    if kind in named:
        return named[kind](str(value))
    if kind == BOOLEAN:
        return value == "true" if isinstance(value, str) else bool(value)
    if kind in (INTEGER, NUMBER):
        number = _number(value, kind)
        if completing:
            return str(value) if number is None else number
        return _within(option, number)
    said = str(value)
    least, most = option.get("min_length") or 0, option.get("max_length") or LONGEST
    if not completing and not least <= len(said) <= most:
        raise Refusal(400, f"{option['name']} has {least} to {most} characters.")
    return said


def _number(value: Any, kind: int) -> float | int | None:
    """Return the number that a person typed, or that a form sent as text; None if it is not one of this kind."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not abs(number) <= GREATEST or (kind == INTEGER and not number.is_integer()):
        return None
    return int(number) if kind == INTEGER else number


def _within(option: dict[str, Any], number: float | None) -> float:
    least, most = option.get("min_value", -GREATEST), option.get("max_value", GREATEST)
    if number is None or not least <= number <= most:
        what = "a whole number" if option["type"] == INTEGER else "a number"
        raise Refusal(400, f"{option['name']} is {what} from {least} to {most}.")
    return number
