"""INTERACTION_CREATE for commands outside the bot's guilds: in a direct message, a group, or as a user's own app."""

from typing import Any

from sandbox.base.body import Body, text
from sandbox.base.refusal import Refusal
from sandbox.discord.interactions.command_options import chosen_options, find_command
from sandbox.discord.interactions.in_guild import locale_in
from sandbox.discord.interactions.interactions import AUTOCOMPLETE, COMMAND, NO_GUILD, Interaction, Interactions
from sandbox.discord.interactions.resolving import Resolving
from sandbox.discord.world import permissions, shapes
from sandbox.discord.world.entities import Guild, Member, User
from sandbox.discord.world.lookup import find_guild, find_member, find_user
from sandbox.discord.world.protocols import Discord

Json = dict[str, Any]

CONTEXTS = {"guild": 0, "bot_dm": 1, "private_channel": 2}
KINDS = {"command": COMMAND, "autocomplete": AUTOCOMPLETE}
DM, GROUP_DM = 1, 3
USER_INSTALL = 1


def build(interactions: Interactions, body: Body) -> tuple[Interaction, Json]:
    """Return the interaction and its event.

    `context` is guild (with the app installed for the user alone), bot_dm or private_channel. Raises Refusal for what
    Discord's client would not offer.
    """
    discord, context, kind = interactions.discord, text(body, "context"), text(body, "kind")
    if context not in CONTEXTS:
        raise Refusal(400, f"context is one of: {', '.join(CONTEXTS)}.")
    if kind not in KINDS:
        raise Refusal(400, f"In this context there are only: {', '.join(KINDS)}.")
    user = find_user(discord, text(body, "user"))
    number = CONTEXTS[context]
    guild = find_guild(discord, text(body, "guild")) if context == "guild" else Guild(NO_GUILD, "", "0", None)
    member = find_member(guild, user) if context == "guild" else Member(NO_GUILD, user.id, "")
    command = find_command(discord, guild, text(body, "name").removeprefix("/"))
    definition = command.definition
    contexts, types = definition.get("contexts"), definition.get("integration_types")
    if contexts is not None and number not in contexts:
        raise Refusal(403, f"Discord does not offer /{definition['name']} there.")
    if contexts is None and context == "bot_dm" and definition.get("dm_permission") is False:
        raise Refusal(403, f"Discord does not offer /{definition['name']} in direct messages.")
    if context != "bot_dm" and not (discord.application.user_install or USER_INSTALL in (types or ())):
        raise Refusal(403, f"/{definition['name']} is not offered to somebody who installed the app for themselves.")
    resolving = Resolving(discord, guild, member)
    options = chosen_options(definition, [], body, kind == "autocomplete", resolving)
    data: Json = {"id": command.id, "name": definition["name"], "type": definition["type"], "options": options}
    if resolving.found:
        data["resolved"] = resolving.found
    place, where = _place(discord, context, guild, member, user)
    interaction = Interaction(discord.world.ids.next(), KINDS[kind], guild.id, place["id"], user.id)
    event: Json = {
        "type": interaction.kind,
        "token": interaction.token,
        "version": 1,
        "id": interaction.id,
        "application_id": discord.bot_id,
        "channel_id": place["id"],
        "channel": place,
        "app_permissions": "442368",
        "locale": locale_in(body),
        "entitlements": [],
        "authorizing_integration_owners": {"0": "0"} if context == "bot_dm" else {"1": user.id},
        "context": number,
        "attachment_size_limit": 10_485_760,
        "data": data,
        **where,
    }
    return interaction, event


def _place(discord: Discord, context: str, guild: Guild, member: Member, user: User) -> tuple[Json, Json]:
    """Return the channel, and the event's fields for the user and the guild."""
    if context == "guild":
        channel = next((one for one in guild.channels.values() if one.type in (0, 5)), None)
        if channel is None:
            raise Refusal(404, f"{guild.name} has no text channel.")
        granted = str(permissions.channel_permissions(guild, channel, member))
        where: Json = {
            "guild_id": guild.id,
            "guild": {"id": guild.id, "locale": "en-US", "features": []},
            "guild_locale": "en-US",
            "member": {**shapes.member(member, user), "permissions": granted},
        }
        return {**shapes.channel(channel), "permissions": granted}, where
    place: Json = {"id": discord.world.ids.next(), "last_message_id": None, "flags": 0}
    if context == "bot_dm":
        place |= {"type": DM, "recipients": [shapes.user(discord.world.users[discord.bot_id])]}
    else:
        place |= {"type": GROUP_DM, "name": None, "icon": None, "owner_id": user.id, "recipients": []}
    return place, {"user": shapes.user(user)}
