"""REST: application commands, global and of one guild."""

import re
from typing import Any

from sandbox.discord import shapes
from sandbox.discord.entities import Command
from sandbox.discord.errors import DiscordError, form_error, missing_access, unknown
from sandbox.discord.fields import Form, given_number, given_text, needed_text
from sandbox.discord.rest import Call, Endpoint, answered

CHAT_INPUT = 1
MOST = {CHAT_INPUT: 100, 2: 15, 3: 15}
_NAME = re.compile(r"[-_'\w]{1,32}")


async def list_commands(call: Call) -> list[Any]:
    """GET …/commands."""
    return [_shape(call, command) for command in _scope(call)]


async def post_command(call: Call) -> Any:
    """POST …/commands: 201 for a new name, 200 when one of that name and type is overwritten."""
    command, status = _upsert(call, call.form())
    return answered(_shape(call, command), status)


async def put_commands(call: Call) -> list[Any]:
    """PUT …/commands: exactly these remain."""
    if not isinstance(call.body, list):
        raise DiscordError(400, 50035, "Invalid Form Body")
    kept = [_upsert(call, form)[0] for form in call.body]
    gone = [command for command in _scope(call) if command not in kept]
    call.discord.world.remove(*gone)
    return [_shape(call, command) for command in kept]


async def get_command(call: Call) -> dict[str, Any]:
    """GET …/commands/{command}."""
    return _shape(call, _command(call))


async def patch_command(call: Call) -> dict[str, Any]:
    """PATCH …/commands/{command}."""
    command = _command(call)
    merged = {**command.definition, **call.form(), "type": command.definition["type"]}
    command.definition = _definition(merged)
    command.version = call.discord.world.ids.next()
    call.discord.world.save(command)
    return _shape(call, command)


async def delete_command(call: Call) -> None:
    """DELETE …/commands/{command}."""
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


def _upsert(call: Call, form: Form) -> tuple[Command, int]:
    definition = _definition(form)
    ids = call.discord.world.ids
    scope = _scope(call)
    for command in scope:
        if (command.definition["name"], command.definition["type"]) == (definition["name"], definition["type"]):
            if command.definition != definition:
                command.definition, command.version = definition, ids.next()
            call.discord.world.save(command)
            return command, 200
    same_type = [command for command in scope if command.definition["type"] == definition["type"]]
    if len(same_type) >= MOST[definition["type"]]:
        raise DiscordError(400, 30032, "Maximum number of application commands reached (100)")
    command = Command(ids.next(), ids.next(), _guild_id(call), definition)
    call.discord.world.save(command)
    return command, 201


def _definition(form: Form) -> dict[str, Any]:
    """A checked definition with Discord's defaults."""
    kind = given_number(form, "type") or CHAT_INPUT
    if kind not in MOST:
        raise form_error("type", "Value must be one of {1, 2, 3}.")
    name = needed_text(form, "name", 32)
    if kind == CHAT_INPUT and (not _NAME.fullmatch(name) or name != name.lower()):
        raise form_error("name", "Command name is invalid")
    description = needed_text(form, "description", 100) if kind == CHAT_INPUT else given_text(form, "description", 100)
    needed = given_number(form, "default_member_permissions")
    definition: dict[str, Any] = {
        "type": kind,
        "name": name,
        "name_localizations": form.get("name_localizations"),
        "description": description or "",
        "description_localizations": form.get("description_localizations"),
        "default_member_permissions": None if needed is None else str(needed),
        "dm_permission": form.get("dm_permission") is not False,
        "contexts": form.get("contexts"),
        "integration_types": form.get("integration_types") or [0],
        "nsfw": bool(form.get("nsfw")),
    }
    options = _options(form.get("options") or [], "options")
    return {**definition, "options": options} if options else definition


def _options(options: list[Form], path: str) -> list[dict[str, Any]]:
    if len(options) > 25:
        raise form_error(path, "Must be 25 or fewer in length.")
    optional_seen = False
    shown: list[dict[str, Any]] = []
    for at, option in enumerate(options):
        name = needed_text(option, "name", 32)
        if not _NAME.fullmatch(name) or name != name.lower():
            raise form_error(f"{path}.{at}.name", "Command name is invalid")
        needed_text(option, "description", 100)
        if option.get("required") and optional_seen:
            text = "Required options must be placed before non-required options"
            raise form_error(f"{path}.{at}", text)
        optional_seen = optional_seen or not option.get("required")
        kept = {key: value for key, value in option.items() if value is not None and value != []}
        if kept.get("options"):
            kept["options"] = _options(kept["options"], f"{path}.{at}.options")
        shown.append(kept)
    return shown


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
