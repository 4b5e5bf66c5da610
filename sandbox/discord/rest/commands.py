"""REST: application commands, global and of one guild."""

from collections import Counter
from typing import Any

from sandbox.discord.answers.errors import DiscordError, form_error, missing_access, unknown
from sandbox.discord.answers.response import answered
from sandbox.discord.forms import commands
from sandbox.discord.rest.call import Call, Endpoint
from sandbox.discord.world import shapes
from sandbox.discord.world.entities import Command

CHAT_INPUT = 1
MOST = {CHAT_INPUT: 100, 2: 15, 3: 15}
LOCALIZATIONS = ("name_localizations", "description_localizations")


async def list_commands(call: Call) -> list[Any]:
    """Answer GET …/commands; localized words are included with `with_localizations=true`."""
    listed = [_shape(call, command) for command in _scope(call)]
    return listed if call.switch("with_localizations") else _unlocalized(listed)


async def post_command(call: Call) -> Any:
    """Answer POST …/commands: 201 for a new name, 200 when one of that name and type is overwritten."""
    definition = _completed(commands.command(call.form()))
    _need_room(call, [*(command.definition for command in _scope(call)), definition])
    command, is_new = _upsert(call, definition)
    return answered(_shape(call, command), 201 if is_new else 200)


async def put_commands(call: Call) -> list[Any]:
    """Answer PUT …/commands: exactly these commands remain, or nothing changes."""
    if not isinstance(call.body, list):
        raise DiscordError(400, 50035, "Invalid Form Body")
    definitions = [_completed(commands.command(form, (at,))) for at, form in enumerate(call.body)]
    commands.names_twice([_key(definition) for definition in definitions]).complain()
    _need_room(call, definitions)
    kept = [_upsert(call, definition)[0] for definition in definitions]
    gone = [command for command in _scope(call) if command not in kept]
    call.discord.world.remove(*gone)
    return [_shape(call, command) for command in kept]


async def get_command(call: Call) -> dict[str, Any]:
    """Answer GET …/commands/{command}."""
    return _shape(call, _command(call))


async def patch_command(call: Call) -> dict[str, Any]:
    """Answer PATCH …/commands/{command}."""
    command = _command(call)
    merged = {**command.definition, **call.form(), "type": command.definition["type"]}
    definition = _completed(commands.command(merged))
    if any(_key(other.definition) == _key(definition) for other in _scope(call) if other is not command):
        raise form_error("name", commands.NOT_UNIQUE)
    command.definition = definition
    command.version = call.discord.world.ids.next()
    call.discord.world.save(command)
    return _shape(call, command)


async def delete_command(call: Call) -> None:
    """Answer DELETE …/commands/{command}."""
    call.discord.world.remove(_command(call))


def _guild_id(call: Call) -> str | None:
    if call.snowflake("application_id") != call.discord.bot_id:
        raise DiscordError(403, 20012, "You are not authorized to perform this action on this application")
    if "guild_id" not in call.request.match_info:
        return None
    guild = call.discord.world.guilds.get(call.snowflake("guild_id"))
    if guild is None or call.discord.bot_id not in guild.members:
        raise missing_access()
    return guild.id


def _scope(call: Call) -> list[Command]:
    guild_id = _guild_id(call)
    return [command for command in call.discord.world.commands.values() if command.guild_id == guild_id]


def _command(call: Call) -> Command:
    command_id = call.snowflake("command_id")
    for command in _scope(call):
        if command.id == command_id:
            return command
    raise unknown("application command")


def _need_room(call: Call, definitions: list[dict[str, Any]]) -> None:
    """Count the new commands among those that are to be there. Raises 30032 for too many, 30034 for too many a day."""
    wanted = Counter(kind for kind, _ in {_key(definition) for definition in definitions})
    for kind, most in MOST.items():
        if wanted[kind] > most:
            raise DiscordError(400, 30032, f"Maximum number of application commands reached ({most})")
    known = {_key(command.definition) for command in _scope(call)}
    new = sum(_key(definition) not in known for definition in definitions)
    if new and not call.discord.limits.take_creations(_guild_id(call) or "", new):
        raise DiscordError(400, 30034, "Max number of daily application command creates has been reached (200)")


def _upsert(call: Call, definition: dict[str, Any]) -> tuple[Command, bool]:
    """Return the command of that type and name with this definition, and whether it is new."""
    ids = call.discord.world.ids
    for command in _scope(call):
        if _key(command.definition) == _key(definition):
            if command.definition != definition:
                command.definition, command.version = definition, ids.next()
            call.discord.world.save(command)
            return command, False
    command = Command(ids.next(), ids.next(), _guild_id(call), definition)
    call.discord.world.save(command)
    return command, True


def _key(definition: dict[str, Any]) -> tuple[int, str]:
    return definition["type"], definition["name"]


def _completed(form: dict[str, Any]) -> dict[str, Any]:
    """Return a checked definition with Discord's defaults."""
    needed = form.get("default_member_permissions")
    definition: dict[str, Any] = {
        "type": form["type"],
        "name": form["name"],
        "name_localizations": form.get("name_localizations"),
        "description": form.get("description", ""),
        "description_localizations": form.get("description_localizations"),
        "default_member_permissions": None if needed is None else str(needed),
        "dm_permission": form.get("dm_permission", True),
        "contexts": form.get("contexts"),
        "integration_types": form.get("integration_types", [0]),
        "nsfw": form.get("nsfw", False),
    }
    options = [_option(option) for option in form.get("options", [])]
    return {**definition, "options": options} if options else definition


def _option(option: dict[str, Any]) -> dict[str, Any]:
    """Return an option as it is kept: false or empty values are left out, localizations are always there."""
    kept = {name: value for name, value in option.items() if value is not False and value != []}
    kept |= {name: option.get(name) for name in LOCALIZATIONS}
    if "choices" in kept:
        kept["choices"] = [{"name_localizations": None, **choice} for choice in kept["choices"]]
    if "options" in kept:
        kept["options"] = [_option(each) for each in kept["options"]]
    return kept


def _unlocalized(part: Any) -> Any:
    """Return the same without localizations, which a list has only when they are asked for."""
    if isinstance(part, list):
        return [_unlocalized(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {name: _unlocalized(value) for name, value in part.items() if name not in LOCALIZATIONS}


def _shape(call: Call, command: Command) -> dict[str, Any]:
    return shapes.command(command, call.discord.bot_id)


def _both(method: str, tail: str, handler: Any) -> tuple[Endpoint, Endpoint]:
    base = "/applications/{application_id}"
    return (
        Endpoint(method, f"{base}/commands{tail}", handler),
        Endpoint(method, f"{base}/guilds/{{guild_id}}/commands{tail}", handler),
    )


ENDPOINTS = (
    *_both("GET", "", list_commands),
    *_both("POST", "", post_command),
    *_both("PUT", "", put_commands),
    *_both("GET", "/{command_id}", get_command),
    *_both("PATCH", "/{command_id}", patch_command),
    *_both("DELETE", "/{command_id}", delete_command),
)
