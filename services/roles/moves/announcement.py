"""A move's announcement: one message in a channel that an admin chose, besides the panel. It mentions nobody."""

from collections.abc import Collection
from datetime import datetime
from hashlib import blake2b
from typing import Any

from gateways import Gateways
from gateways.discord.channels import Channel, Message
from gateways.discord.types import ChannelGone, Guild, MessageGone
from gateways.transport.errors import ProviderError
from locales import _, speaking
from models import Server, ServerMove
from services.core.discord_text import COLORS
from services.core.errors import FieldRefused, unavailable
from services.guilds import panel
from services.guilds.role_safety import RoleStanding
from services.guilds.verification_channel import EMBED, SEND, VIEW
from settings import settings

_NEEDED = VIEW | SEND | EMBED


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


async def check_channel(outside: Gateways, guild: Guild, bot: RoleStanding, channel_id: str) -> None:
    """Raise FieldRefused for a channel of another server or one in which the bot may not write, ProviderUnavailable."""
    try:
        channel = next((one for one in await outside.discord.channels(guild.id) if one.id == channel_id), None)
        if channel is None:
            raise FieldRefused("channelId", _("There is no such channel in this server (any more)."))
        me = (await outside.discord.me()).id
        roles = set((await outside.discord.member(guild.id, me)).roles)
    except ProviderError as fault:
        raise unavailable(fault) from fault
    if not bot.is_admin and ~_permissions(channel, guild.id, bot.permissions, roles, me) & _NEEDED:
        raise FieldRefused(
            "channelId",
            _("The bot may not write in this channel. Let it view the channel, send messages and embed links there."),
        )


def _permissions(channel: Channel, guild_id: str, permissions: int, roles: Collection[str], me: str) -> int:
    """Return the bot's permissions in a channel: @everyone's overwrite, then those of its roles, then its own."""
    for ids in ({guild_id}, roles, {me}):
        there = [one for one in channel.overwrites if one.id in ids]
        for overwrite in there:
            permissions &= ~overwrite.deny
        for overwrite in there:
            permissions |= overwrite.allow
    return permissions


async def post(outside: Gateways, server: Server, move: ServerMove, at: datetime, channel_id: str) -> str | None:
    """Post the message in a channel, or edit it if it is there already.

    Return its id, or None if Discord did not let us. A repeat posts nothing: it finds the message that an earlier
    attempt posted and whose id was not stored. Raises ChannelGone.
    """
    wanted = body(server, move, at)
    try:
        if move.message_id is not None:
            try:
                return (await outside.discord.edit_message(channel_id, move.message_id, wanted)).id
            except MessageGone:
                pass
        me, recent = (await outside.discord.me()).id, await outside.discord.recent_messages(channel_id)
        posted = next((one for one in recent if one.author_id == me and _fits(one, wanted)), None)
        # If an attempt is under way, or the messages are unreadable, Discord recognises the nonce for some minutes.
        posted = posted or await outside.discord.post_message(channel_id, wanted, _nonce(move, channel_id))
        if not _fits(posted, wanted):
            await outside.discord.edit_message(channel_id, posted.id, wanted)
    except ChannelGone:
        raise
    except ProviderError:
        return None
    return posted.id


def _fits(message: Message, wanted: dict[str, Any]) -> bool:
    return panel.fits(message, {"components": [], **wanted})


def _nonce(move: ServerMove, channel_id: str) -> str:
    """Return the nonce of an announcement; another one follows a message that was deleted."""
    return blake2b(f"{move.id} {channel_id} {move.message_id}".encode(), digest_size=12).hexdigest()


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
