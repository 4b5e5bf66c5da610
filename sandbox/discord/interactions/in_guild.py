"""INTERACTION_CREATE for what a person does in a guild that the bot is in: only what Discord's client offers them."""

from typing import Any

from sandbox.base.body import Body, optional_text, text
from sandbox.base.refusal import Refusal
from sandbox.discord.actions import messages
from sandbox.discord.forms import components as parts
from sandbox.discord.forms.commands import LOCALES
from sandbox.discord.interactions.command_options import STRING, chosen_options, find_command, may_use
from sandbox.discord.interactions.interactions import (
    AUTOCOMPLETE,
    COMMAND,
    COMPONENT,
    MODAL_SUBMIT,
    Interaction,
    Interactions,
)
from sandbox.discord.interactions.modal_submit import filled_in
from sandbox.discord.interactions.resolving import Resolving
from sandbox.discord.world import permissions, shapes
from sandbox.discord.world.entities import Channel, Guild, Member, Message
from sandbox.discord.world.lookup import find_guild, find_member, find_user
from sandbox.discord.world.protocols import Discord

KINDS = {
    "command": COMMAND,
    "autocomplete": AUTOCOMPLETE,
    "button": COMPONENT,
    "select": COMPONENT,
    "modal": MODAL_SUBMIT,
}


def build(interactions: Interactions, body: Body) -> tuple[Interaction, dict[str, Any]]:
    """Return the interaction and its event. Raises Refusal for what Discord's client would not offer the person."""
    discord, kind = interactions.discord, text(body, "kind")
    if kind not in KINDS:
        raise Refusal(400, f"There is no interaction {kind!r}. The kinds are: {', '.join(KINDS)}.")
    guild = find_guild(discord, text(body, "guild"))
    if discord.bot_id not in guild.members:
        raise Refusal(404, f"The bot is not in {guild.name}.")
    member = find_member(guild, find_user(discord, text(body, "user")))
    channel, source = _place(interactions, guild, member, body)
    granted = permissions.channel_permissions(guild, channel, member)
    if not granted & permissions.VIEW_CHANNEL:
        raise Refusal(403, f"That member cannot see #{channel.name}.")
    match kind:
        case "command" | "autocomplete":
            if not granted & permissions.USE_APPLICATION_COMMANDS:
                raise Refusal(403, f"That member may not use application commands in #{channel.name}.")
            data = _command(discord, guild, member, body, kind == "autocomplete")
        case "button" | "select":
            data = _component(source, body, Resolving(discord, guild, member))
        case _:
            data, source = _modal(interactions, Resolving(discord, guild, member), body)
    interaction = Interaction(discord.world.ids.next(), KINDS[kind], guild.id, channel.id, member.user_id, source)
    interaction.option_type = _focused_type(data.get("options") or [])
    event = _event(discord, interaction, guild, channel, member, data)
    return interaction, {**event, "locale": locale_in(body)}


def locale_in(body: Body) -> str:
    """Return the language of the person's Discord client. Raises Refusal for one that Discord does not have."""
    locale = optional_text(body, "locale") or "en-US"
    if locale not in LOCALES:
        raise Refusal(400, f"Discord has no locale {locale!r}. It has: {', '.join(LOCALES)}.")
    return locale


def _place(interactions: Interactions, guild: Guild, member: Member, body: Body) -> tuple[Channel, Message | None]:
    """Return the channel, and for a button or select the message that has it."""
    wanted = optional_text(body, "channel")
    places = list(guild.channels.values())
    if wanted is not None:
        places = [channel for channel in places if wanted in (channel.id, channel.name)]
        if not places:
            raise Refusal(404, f"{guild.name} has no channel {wanted!r}.")
    if body["kind"] in ("button", "select"):
        source = _message_with(interactions, places, member, text(body, "custom_id"), optional_text(body, "message_id"))
        return interactions.discord.world.channels[source.channel_id], source
    texts = [channel for channel in places if channel.type in (0, 5)]
    if not texts:
        raise Refusal(404, f"{guild.name} has no such text channel.")
    return texts[0], None


def _message_with(
    interactions: Interactions, places: list[Channel], member: Member, custom_id: str, message_id: str | None
) -> Message:
    """Return the newest message with this component that the member sees."""
    ids = {channel.id for channel in places}
    shown = [message for channel in places for message in interactions.discord.world.messages[channel.id].values()]
    shown += [m for m in interactions.hidden_messages(member.user_id) if m.channel_id in ids]
    for message in sorted(shown, key=lambda message: -int(message.id)):
        if message_id in (None, message.id) and messages.find(message.components, custom_id):
            return message
    raise Refusal(404, f"That member sees no message with a component {custom_id!r}.")


def _command(discord: Discord, guild: Guild, member: Member, body: Body, completing: bool) -> dict[str, Any]:
    name, *path = text(body, "name").removeprefix("/").split() or [""]
    command = find_command(discord, guild, name)
    if not may_use(guild, member, command):
        raise Refusal(403, f"Discord does not offer /{name} to that member: its permissions are lacking.")
    resolving = Resolving(discord, guild, member)
    options = chosen_options(command.definition, path, body, completing, resolving)
    data: dict[str, Any] = {"id": command.id, "name": name, "type": command.definition["type"], "options": options}
    if command.guild_id:
        data["guild_id"] = command.guild_id
    return {**data, "resolved": resolving.found} if resolving.found else data


def _focused_type(options: list[dict[str, Any]]) -> int:
    """Return Discord's number for the type of the option that the person is typing; STRING if there is none."""
    for option in options:
        if option.get("focused"):
            return option["type"]
        if option.get("options"):
            return _focused_type(option["options"])
    return STRING


def _component(source: Message | None, body: Body, resolving: Resolving) -> dict[str, Any]:
    component = messages.find(source.components if source else [], body["custom_id"])
    if component is None:
        raise Refusal(404, f"There is no component {body['custom_id']!r}.")
    if component.get("disabled"):
        raise Refusal(400, "That component is disabled.")
    is_button = component["type"] == parts.BUTTON
    if is_button != (body["kind"] == "button"):
        raise Refusal(400, f"That component is no {body['kind']}.")
    data = {"custom_id": body["custom_id"], "component_type": component["type"], "id": component["id"]}
    if is_button:
        return data
    given: Any = body.get("values") or []
    if not isinstance(given, list):
        raise Refusal(400, "values is a list.")
    values = [str(value) for value in given]
    if component["type"] == parts.STRING_SELECT:
        offered = {option["value"] for option in component["options"]}
        if not set(values) <= offered:
            raise Refusal(400, f"The select offers: {', '.join(sorted(offered))}.")
    else:
        named = {5: resolving.user, 6: resolving.role, 7: resolving.mentionable, 8: resolving.channel}
        values = [named[component["type"]](value) for value in values]
        data["resolved"] = resolving.found
    if len(set(values)) < len(values):
        raise Refusal(400, "Each value is chosen once.")
    if not component["min_values"] <= len(values) <= component["max_values"]:
        raise Refusal(400, f"Between {component['min_values']} and {component['max_values']} values can be chosen.")
    return {**data, "values": values}


def _modal(interactions: Interactions, resolving: Resolving, body: Body) -> tuple[dict[str, Any], Message | None]:
    custom_id, user_id = text(body, "custom_id"), resolving.chooser.user_id
    opened = interactions.modals.get((user_id, custom_id))
    if opened is None:
        raise Refusal(404, f"That member has no modal {custom_id!r} open.")
    modal, source = opened
    given: dict[str, Any] = body.get("fields") or {}
    if not isinstance(given, dict):
        raise Refusal(400, "fields is an object of custom ids and values.")
    rows = filled_in(modal["components"], given, resolving)
    del interactions.modals[user_id, custom_id]
    data = {"custom_id": custom_id, "components": rows}
    return {**data, "resolved": resolving.found} if resolving.found else data, source


def _event(
    discord: Discord, interaction: Interaction, guild: Guild, channel: Channel, member: Member, data: dict[str, Any]
) -> dict[str, Any]:
    user, bot = discord.world.users[member.user_id], guild.members[discord.bot_id]
    granted = permissions.channel_permissions(guild, channel, member)
    event: dict[str, Any] = {
        "type": interaction.kind,
        "token": interaction.token,
        "version": 1,
        "id": interaction.id,
        "application_id": discord.bot_id,
        "guild_id": guild.id,
        "guild": {"id": guild.id, "locale": "en-US", "features": []},
        "channel_id": channel.id,
        "channel": {**shapes.channel(channel), "permissions": str(granted)},
        "app_permissions": str(permissions.channel_permissions(guild, channel, bot)),
        "guild_locale": "en-US",
        "member": {**shapes.member(member, user), "permissions": str(granted)},
        "entitlements": [],
        "authorizing_integration_owners": {"0": guild.id},
        "context": 0,
        "attachment_size_limit": 10_485_760,
        "data": data,
    }
    if interaction.source is not None:
        author = discord.world.users[interaction.source.author_id]
        event["message"] = shapes.message(interaction.source, author)
    return event
