"""The log channel, where alerts for a server's admins are posted."""

import secrets

from gateways import Gateways
from gateways.discord.types import MissingAccess, MissingPermissions
from gateways.transport.errors import ProviderError
from locales import _, speaking
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.core.discord_text import COLORS
from services.core.errors import FieldRefused, unavailable
from services.guilds import permissions


async def choose(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, channel_id: str | None
) -> str | None:
    """Choose the channel for alerts (None for no alerts) and return its name. A first message tests the channel.

    Raises ServerNotFound, Conflict when the bot is not in the server, FieldRefused for a channel of another server or
    one in which the bot may not read or write, ProviderUnavailable.
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    name = None
    if channel_id is not None:
        name = await _greet(outside, found.guild_with_bot()[0].id, channel_id, found.server.language)
    found.server.log_channel_id = channel_id
    db.add(found.server)
    await audit.record(
        db,
        audit.line(
            "log_channel.chosen", server_id=server_id, actor=actor.discord_id,
            data={"channelId": channel_id, "name": name},
        ),
    )  # fmt: skip
    return name


async def _greet(outside: Gateways, guild_id: str, channel_id: str, language: str) -> str:
    try:
        channel = next((one for one in await outside.discord.channels(guild_id) if one.id == channel_id), None)
    except ProviderError as fault:
        raise unavailable(fault) from fault
    if channel is None:
        raise FieldRefused("channelId", _("There is no such channel in this server (any more)."))
    with speaking(language):
        title = _("Alerts arrive here")
        text = _(
            "Problems with rules, roles and providers are posted here: once when they begin and once when they end."
        )
    hello = {"embeds": [{"title": title, "description": text, "color": COLORS["info"]}]}
    try:
        await outside.discord.post_message(channel_id, hello, secrets.token_hex(8))
        # Discord returns an empty list without the permission to read, and an alert might then be posted twice.
        readable = bool(await outside.discord.recent_messages(channel_id))
    except (MissingAccess, MissingPermissions):
        raise FieldRefused(
            "channelId",
            _("The bot may not write in #{name}. Let it view the channel, send messages and embed links there.").format(
                name=channel.name
            ),
        ) from None
    except ProviderError as fault:
        raise unavailable(fault) from fault
    if not readable:
        raise FieldRefused(
            "channelId",
            _("The bot may not read #{name}. Give it Read Message History there.").format(name=channel.name),
        )
    return channel.name
