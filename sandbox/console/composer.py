"""The input line: messages, and the commands that Discord offers, each with its options."""

from typing import Any

from sandbox.console.elements.forms import act, hidden
from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.place import Place
from sandbox.discord import LocalDiscord
from sandbox.discord.actions import messages
from sandbox.discord.interactions import command_options
from sandbox.discord.world import permissions
from sandbox.discord.world.entities import Channel, Guild, Member

Json = dict[str, Any]


def composer(discord: LocalDiscord, place: Place) -> Markup:
    """Return the input line, and above it the commands that begin with what was typed."""
    guild, channel = place.guild, place.channel
    if guild is None or channel is None:
        return el("p", "You are in no server.", class_="dim")
    member = guild.members[place.user.id]
    granted = permissions.channel_permissions(guild, channel, member)
    forms, note = _offered(discord, place, guild, channel, member)
    writes = bool(granted & permissions.SEND_MESSAGES)
    asks = f"Message #{channel.name}" if writes else f"You may not write in #{channel.name}"
    asks += ", or / for commands" if forms and writes else "; / for commands" if forms else ""
    line = el(
        "form",
        hidden(back=place.url(), guild=guild.id, channel=channel.id, **{"as": place.user.username}),
        el("label", "Write a message, or use a command", for_="typed", class_="unseen"),
        el(
            "input",
            id="typed",
            name="typed",
            value=place.typed,
            placeholder=asks,
            maxlength=messages.LONGEST,
            autocomplete="off",
            aria_controls="commands",
            aria_describedby="typed-help",
        ),
        el("span", f"{len(forms)} commands. Enter takes the first one.", id="typed-help", class_="unseen"),
        method="post",
        action="/console/say",
        id="typing",
    )
    nothing = el("li", "No command begins with that.", id="no-command", class_="dim", hidden=True)
    return el("div", note, line, el("ul", forms, nothing, id="commands", aria_label="Commands"), class_="composer")


def _offered(
    discord: LocalDiscord, place: Place, guild: Guild, channel: Channel, member: Member
) -> tuple[list[Markup], Markup | None]:
    """Return the commands, those that do not begin with what was typed being hidden, and a note why there are none."""
    if discord.bot_id not in guild.members:
        link = el("a", "Let it in", href=place.url(panel="servers"))
        return [], el("p", "The bot is not in this server, so there are no commands. ", link, class_="dim note")
    if not permissions.channel_permissions(guild, channel, member) & permissions.USE_APPLICATION_COMMANDS:
        return [], el("p", f"You may not use commands in #{channel.name}.", class_="dim note")
    typed = (place.typed or "").removeprefix("/").strip().lower()
    shown = (place.typed or "").startswith("/")
    offered = command_options.offered(discord, guild, member)
    return [
        _command(place, guild, one.definition, not shown or not one.definition["name"].startswith(typed))
        for one in offered
    ], None


def _command(place: Place, guild: Guild, definition: Json, unseen: bool) -> Markup:
    options: list[Json] = definition.get("options") or []
    if options and options[0]["type"] in (command_options.SUB_COMMAND, command_options.SUB_COMMAND_GROUP):
        inner = [_form(place, guild, f"{definition['name']} {one['name']}", one) for one in options]
    else:
        inner = [_form(place, guild, definition["name"], definition)]
    return el("li", inner, data_command=definition["name"], hidden=unseen)


def _form(place: Place, guild: Guild, name: str, definition: Json) -> Markup:
    options: list[Json] = definition.get("options") or []
    return act(
        place,
        "command",
        el("p", el("strong", f"/{name}"), el("span", str(definition.get("description", "")), class_="dim")),
        (_option(guild, name, option) for option in options),
        el("button", "Send", aria_label=f"Send /{name}", class_="secondary"),
        class_="command",
        name=name,
    )


def _option(guild: Guild, command: str, option: Json) -> Markup:
    name, kind, needed = str(option["name"]), option["type"], bool(option.get("required"))
    key, title = f"option.{name}", str(option.get("description", ""))
    label = el("span", name, None if needed else el("span", " (optional)", class_="dim"))
    offered: dict[str, str] | None = {str(one["value"]): str(one["name"]) for one in option.get("choices", [])} or None
    match kind:
        case command_options.BOOLEAN:
            offered = {"true": "True", "false": "False"}
        case command_options.ROLE:
            offered = {role.id: role.name for role in guild.roles.values()}
        case command_options.CHANNEL:
            offered = {channel.id: f"#{channel.name}" for channel in guild.channels.values()}
        case _:
            pass
    if offered is not None:
        choices = [el("option", text, value=value) for value, text in offered.items()]
        empty = None if needed else el("option", "", value="")
        return el("label", label, el("select", empty, choices, name=key, title=title))
    list_id = f"completed-{command}-{name}".replace(" ", "-") if option.get("autocomplete") else None
    typed = el(
        "input",
        name=key,
        title=title,
        required=needed,
        type="number" if kind in (command_options.INTEGER, command_options.NUMBER) else "text",
        step="any" if kind == command_options.NUMBER else None,
        list=list_id,
        data_complete=name if list_id else None,
        autocomplete="off",
    )
    return join(el("label", label, typed), el("datalist", id=list_id) if list_id else None)
