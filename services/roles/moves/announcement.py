"""A move's announcement: one message in a channel that an admin chose, besides the panel. It mentions nobody."""

import secrets
from datetime import datetime
from typing import Any

from gateways import Gateways
from gateways.discord.types import ChannelGone, MessageGone, MissingAccess, MissingPermissions
from gateways.transport.errors import ProviderError
from locales import _, speaking
from models import Server, ServerMove
from services.core.discord_text import COLORS
from services.core.errors import FieldRefused, unavailable
from services.guilds import panel
from settings import settings


def body(server: Server, move: ServerMove, at: datetime) -> dict[str, Any]:
    """Return the message in Discord's format, in the server's language; `at` is the present time."""
    with speaking(server.language):
        bot, roles = settings().bot_name, panel.roles_of_move(move)
        match move.state:
            case "open":
                title = _("Our roles move to {bot}").format(bot=bot)
                said = panel.move_text(server, move, at)
            case "approved":
                title = _("The move to {bot} is over").format(bot=bot)
                said = _(
                    "The rules of this server decide about {roles} from now on. You can still verify a wallet at any "
                    "time."
                ).format(roles=roles)
            case _:
                title = _("The move to {bot} was called off").format(bot=bot)
                said = _("Everybody keeps {roles}.").format(roles=roles)
    return {"embeds": [{"title": title, "description": said, "color": COLORS["info"]}]}


async def post(outside: Gateways, server: Server, move: ServerMove, at: datetime, channel_id: str) -> None:
    """Post the message in a channel of the server, or edit it if it is there already.

    Raises FieldRefused for a channel of another server or one in which the bot may not write, ProviderUnavailable.
    """
    try:
        channel = next((one for one in await outside.discord.channels(server.discord_id) if one.id == channel_id), None)
        if channel is None:
            raise FieldRefused("channelId", _("There is no such channel in this server (any more)."))
        if move.channel_id == channel_id and move.message_id is not None:
            try:
                await outside.discord.edit_message(channel_id, move.message_id, body(server, move, at))
                return
            except MessageGone:
                pass
        posted = await outside.discord.post_message(channel_id, body(server, move, at), secrets.token_hex(8))
    except (MissingAccess, MissingPermissions):
        raise FieldRefused(
            "channelId",
            _("The bot may not write in this channel. Let it view the channel, send messages and embed links there."),
        ) from None
    except ProviderError as fault:
        raise unavailable(fault) from fault
    move.channel_id, move.message_id = channel_id, posted.id


async def edit(outside: Gateways, server: Server, move: ServerMove, at: datetime) -> bool:
    """Write the move's present state into the message, if there is one; return whether it is up to date."""
    if move.channel_id is None or move.message_id is None:
        return True
    try:
        await outside.discord.edit_message(move.channel_id, move.message_id, body(server, move, at))
    except (ChannelGone, MessageGone):
        return True
    except ProviderError:
        return False
    return True


async def withdraw(
    outside: Gateways, server: Server, move: ServerMove, channel_id: str | None, message_id: str | None
) -> bool:
    """Edit a former announcement to say where the announcement is now; return whether Discord let us."""
    if channel_id is None or message_id is None or message_id == move.message_id:
        return True
    with speaking(server.language):
        said = (
            _("This is announced in {channel} now.").format(channel=f"<#{move.channel_id}>")
            if move.channel_id
            else _("This is no longer announced here.")
        )
    try:
        await outside.discord.edit_message(channel_id, message_id, {"embeds": [{"description": said}]})
    except (ChannelGone, MessageGone):
        return True
    except ProviderError:
        return False
    return True
