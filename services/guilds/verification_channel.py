"""The verification channel with its panel: create, inspect and repair it; and forget a channel that was deleted."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from gateways import Gateways
from gateways.discord.channels import OF_MEMBER, OF_ROLE, TEXT_CHANNEL, Channel, Message, Overwrite
from gateways.discord.types import ChannelGone, MessageGone, MissingAccess, MissingPermissions
from gateways.transport.errors import ProviderError, ProviderRefused, Unauthorized
from locales import LANGUAGES, N_, _, listed, ngettext, speaking
from models import Server
from models.db.database import release
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.core.errors import Conflict, HoldfastError, Outdated, unavailable
from services.guilds import panel, permissions
from services.guilds.gateway.known_guilds import server_of
from services.guilds.panel import PanelTexts
from services.guilds.permissions import Rights
from settings import settings

_log = logging.getLogger(f"holdfast.{__name__}")

NAME = "verify"
ANNOUNCEMENTS = 5
AT_ONCE = 8
"""Channels of different servers that one process changes at a time."""
MOST_REFRESHES = 3
"""How often a text is written into the panel if it changes each time while it is being written."""

VIEW, SEND, EMBED, HISTORY = 1 << 10, 1 << 11, 1 << 14, 1 << 16
MANAGE_CHANNELS = 1 << 4
_NAMES = {
    # Translators: permissions, as Discord's client calls them in your language.
    MANAGE_CHANNELS: N_("Manage Channels"), VIEW: N_("View Channels"), SEND: N_("Send Messages"),
    EMBED: N_("Embed Links"), HISTORY: N_("Read Message History"),
}  # fmt: skip
BOT_ALLOWED = VIEW | SEND | EMBED | HISTORY
MEMBERS_ALLOWED = VIEW | HISTORY
MEMBERS_DENIED = SEND | 1 << 35 | 1 << 36 | 1 << 38
"""Writing, and creating or writing in threads (docs/facts.md#discord-permissions): members only press buttons here."""

_REASON = "The verification channel"
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
"""The turns of each event loop: a semaphore belongs to one."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """The channel as it is now, and what was created or repaired; `done` is empty if nothing was wrong."""

    channel_id: str
    channel_name: str
    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChannelOption:
    """A channel that can be chosen."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ChannelsView:
    """The verification channel as Discord shows it now: its name (None if there is none), its problems, and its panel.

    The panel's texts name the bot by `bot_id` and the server by `server_name`.
    """

    name: str | None
    faults: tuple[str, ...]
    panel: PanelTexts
    bot_id: str
    server_name: str
    log_channel_id: str | None
    options: tuple[ChannelOption, ...]
    roles: frozenset[str]
    """The ids of the roles that the server has now."""


async def view(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> ChannelsView:
    """Return the state of the channels for somebody who runs the server.

    Raises ServerNotFound, Conflict when the bot is not in it, ProviderUnavailable.
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    guild, _, _ = found.guild_with_bot()
    try:
        options = sorted(
            (one for one in await outside.discord.channels(guild.id) if one.kind in {TEXT_CHANNEL, ANNOUNCEMENTS}),
            key=lambda one: one.name,
        )
        channel, faults = await _inspect(db, outside, found)
        me = (await outside.discord.me()).id
    except ProviderError as fault:
        raise unavailable(fault) from fault
    return ChannelsView(
        channel.name if channel else None,
        faults,
        panel.texts_of(found.server),
        me,
        guild.name,
        found.server.log_channel_id,
        tuple(ChannelOption(one.id, one.name) for one in options),
        frozenset(role.id for role in guild.roles),
    )


async def create_or_repair(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> Repaired:
    """Create the channel with its panel, or repair it, for somebody who runs the server.

    Raises ServerNotFound, Conflict when the bot is not in it or lacks a permission, or when somebody is changing the
    channel right now, ProviderUnavailable.
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    found.guild_with_bot()
    return await _repair(db, outside, actor, found)


async def change_panel(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, texts: PanelTexts, seen: PanelTexts | None = None
) -> str | None:
    """Change the panel's texts and its posted message; return the name of its channel, or None if there is none.

    `seen` are the texts that may be replaced; None stands for any. Raises ServerNotFound, FieldRefused for a text that
    Discord would not accept, Conflict when the bot is not in the server or may not change the message, or when somebody
    is changing the channel right now, Outdated if the panel's texts are not `seen`, ProviderUnavailable.
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    guild = found.guild_with_bot()[0]
    async with _changing(db, found.server):
        me, before = (await outside.discord.me()).id, panel.texts_of(found.server)
        if seen not in {None, before}:
            raise Outdated(
                _(
                    "The panel was changed after you opened it. Save again to replace that change, or load the page "
                    "again to see it."
                )
            )
        panel.keep(found.server, panel.checked(texts, guild.name, me))
        channel = await _stored(outside, found.server)
        done = await _panel(db, outside, found, channel, me) if channel else []
    db.add(found.server)
    # The second click of a double click changes nothing.
    if done or panel.texts_of(found.server) != before:
        line = audit.line("panel.changed", server_id=server_id, actor=actor.discord_id, data={"done": done})
        await audit.record(db, line)
    return channel.name if channel else None


async def refresh_panel(db: AsyncSession, outside: Gateways, server: Server) -> bool:
    """Update the panel's text, if there is a panel. This commits, so that nothing is locked while Discord is asked.

    Return False if Discord refused or did not answer, or if somebody is changing the channel right now.
    """
    written: _Shown | None = None
    for _attempt in range(MOST_REFRESHES):
        if not await _locked(db, server):
            break
        shown = _Shown(
            server.verify_channel_id, server.panel_message_id, panel.texts_of(server), server.name,
            await panel.move_notice(db, server),
        )  # fmt: skip
        if shown == written:
            return True
        await release(db)
        try:
            await _write_panel(outside, server, shown)
        except ProviderError as fault:
            _log.info("panel not updated server=%s reason=%s", server.id, fault)
            return False
        # Somebody may have changed the channel meanwhile, and this may have replaced their text with an older one.
        written = shown
    _log.info("panel not updated server=%s reason=%s", server.id, "the channel is being changed")
    return False


@dataclass(frozen=True, slots=True)
class _Shown:
    """The panel's place, and what its text depends on."""

    channel_id: str | None
    message_id: str | None
    texts: PanelTexts
    server_name: str
    notice: str


async def _write_panel(outside: Gateways, server: Server, shown: _Shown) -> None:
    channel = await _stored(outside, server)
    message = await _stored_panel(outside, server, channel) if channel else None
    if channel is not None and message is not None:
        wanted = panel.body((await outside.discord.me()).id, shown.texts, shown.server_name, shown.notice)
        if not panel.fits(message, wanted):
            await outside.discord.edit_message(channel.id, message.id, wanted)


async def set_up(db: AsyncSession, outside: Gateways, actor: Actor, guild_id: str) -> Repaired:
    """Create or repair the channel from inside Discord, where Manage Server is enough.

    Raises ServerNotFound, Forbidden, Conflict, ProviderUnavailable.
    """
    return await _repair(db, outside, actor, await permissions.require_manage_server(db, outside, actor, guild_id))


async def gone(db: AsyncSession, guild_id: str, channel_id: str) -> None:
    """Forget a channel that was deleted in Discord."""
    server = await server_of(db, guild_id)
    if server is None:
        return
    if server.verify_channel_id == channel_id:
        server.verify_channel_id = server.panel_message_id = None
    if server.log_channel_id == channel_id:
        server.log_channel_id = None
    db.add(server)


async def _inspect(db: AsyncSession, outside: Gateways, found: Rights) -> tuple[Channel | None, tuple[str, ...]]:
    """Return the stored channel, if it is still there, and its problems."""
    try:
        channel = await _stored(outside, found.server)
    except MissingAccess:
        return None, (_("The bot cannot see the channel any more: let it view the channel, or delete it."),)
    if channel is None:
        return None, () if found.server.verify_channel_id is None else (_("The channel was deleted."),)
    faults: list[str] = []
    me = (await outside.discord.me()).id
    if any(one != _have(channel, one.id) for one in _wanted(found, channel, me)):
        faults.append(
            _("Its permissions were changed: members must be able to read but not write, the bot must write.")
        )
    try:
        message = await _stored_panel(outside, found.server, channel)
    except (MissingAccess, MissingPermissions):
        unreadable = _("The bot may not read #{name}. Give it Read Message History there.")
        return channel, (*faults, unreadable.format(name=channel.name))
    if message is None:
        faults.append(_("The panel was deleted."))
    elif not panel.fits(message, await _body(db, found.server, found.guild_with_bot()[0].name, me)):
        faults.append(_("The panel is not up to date."))
    return channel, tuple(faults)


async def _repair(db: AsyncSession, outside: Gateways, actor: Actor, found: Rights) -> Repaired:
    server = found.server
    async with _changing(db, server):
        me = (await outside.discord.me()).id
        channel, done = await _channel(outside, found, me)
        server.verify_channel_id = channel.id
        done += await _panel(db, outside, found, channel, me)
    db.add(server)
    if done:
        # The log stores it in English.
        data = {"done": [one.format(name=channel.name) for one in done]}
        line = audit.line("channel.repaired", server_id=server.id, actor=actor.discord_id, data=data)
        await audit.record(db, line)
    return Repaired(channel.id, channel.name, tuple(_(one).format(name=channel.name) for one in done))


@asynccontextmanager
async def _changing(db: AsyncSession, server: Server) -> AsyncGenerator[None]:
    """Keep others from changing the channel, and raise what Discord answers to the block as an error to show.

    Raises Conflict when somebody is changing the channel right now, or when Discord refuses; ProviderUnavailable.
    """
    # The lock lasts as long as the transaction, so its connection is held while Discord answers. Those who wait for
    # their turn hold none: otherwise a slow Discord would use up all connections of the process.
    await release(db)
    turns = _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))
    try:
        async with turns:
            if not await _locked(db, server):
                busy = _("Somebody is changing the verification channel right now. Please try again in a few seconds.")
                raise Conflict(busy)
            yield
    except MissingAccess:
        hidden = _(
            "The bot cannot see the verification channel any more. Let {bot} view it, or delete it, then try again."
        )
        raise Conflict(hidden.format(bot=settings().bot_name)) from None
    except MissingPermissions:
        raise Conflict(
            _(
                "Discord refused: the bot lacks a permission for this channel. It needs Manage Channels, Manage "
                "Roles, View Channels, Send Messages, Embed Links and Read Message History."
            )
        ) from None
    except ProviderError as fault:
        raise _refused_or_unavailable(fault) from fault


async def _locked(db: AsyncSession, server: Server) -> bool:
    """Keep others from changing the channel until the transaction ends; return False if somebody is changing it.

    Otherwise two presses of a button would create two channels or two panels. No call waits for the lock: its holder
    may wait seconds for Discord, and each waiting call would hold a connection.
    """
    if not await db.try_lock(f"channel:{server.id}", 2):
        return False
    await db.refresh(server)
    return True


def _refused_or_unavailable(fault: ProviderError) -> HoldfastError:
    """Return the error to show: what Discord itself refused, such as a 501st channel, it refuses again in a minute."""
    if not isinstance(fault, ProviderRefused) or isinstance(fault, Unauthorized) or fault.code is None:
        return unavailable(fault)
    reason = str(fault).removeprefix(f"{fault.provider}: ")
    # Translators: {reason} is what Discord answered, in English.
    said = _("Discord refused the change ({reason}). Correct that in Discord, then try again.")
    return Conflict(said.format(reason=reason))


async def _body(db: AsyncSession, server: Server, name: str, me: str) -> Mapping[str, object]:
    notice = await panel.move_notice(db, server)
    return panel.body(me, panel.texts_of(server), name, notice)


async def _stored(outside: Gateways, server: Server) -> Channel | None:
    if server.verify_channel_id is None:
        return None
    try:
        channel = await outside.discord.channel(server.verify_channel_id)
    except ChannelGone:
        return None
    return channel if channel.guild_id == server.discord_id else None


async def _channel(outside: Gateways, found: Rights, me: str) -> tuple[Channel, list[str]]:
    guild, _standing, bot = found.guild_with_bot()
    channel = await _stored(outside, found.server)
    if channel is None:
        # A channel with this topic is ours, created by a request that Discord did not answer.
        topics = {_topic(language) for language in LANGUAGES}
        channel = next((one for one in await outside.discord.channels(guild.id) if one.topic in topics), None)
    if channel is None:
        lacking = [_(name) for bit, name in _NAMES.items() if not (bot.is_admin or bot.permissions & bit)]
        if lacking:
            raise Conflict(
                ngettext(
                    "The bot lacks {permissions} in this server. Switch it on for the bot's role in Server Settings › "
                    "Roles, or invite the bot again.",
                    "The bot lacks {permissions} in this server. Switch them on for the bot's role in Server Settings "
                    "› Roles, or invite the bot again.",
                    len(lacking),
                ).format(permissions=listed(lacking))
            )
        overwrites = _wanted(found, None, me)
        topic = _topic(found.server.language)
        channel = await outside.discord.create_channel(guild.id, NAME, topic, overwrites, _REASON)
        return channel, [N_("Created the channel #{name}.")]
    wrong = [one for one in _wanted(found, channel, me) if one != _have(channel, one.id)]
    for overwrite in wrong:
        await outside.discord.set_overwrite(channel.id, overwrite, _REASON)
    return channel, [N_("Corrected the channel's permissions.")] if wrong else []


def _topic(language: str) -> str:
    with speaking(language):
        # Translators: the topic of the verification channel.
        said = _("Verify your wallets with {bot} and get your roles.").format(bot=settings().bot_name)
        return f"{said} {_(panel.SAFETY)}"


def _wanted(found: Rights, channel: Channel | None, me: str) -> list[Overwrite]:
    """Return the overwrites that @everyone and the bot need; other permissions that an admin set there stay."""
    guild, _, bot = found.guild_with_bot()
    # A bot can only allow or deny what it has itself (docs/facts.md#discord-channels).
    can = -1 if bot.is_admin else bot.permissions
    wanted: list[Overwrite] = []
    for id_, kind, allow, deny in (
        (guild.id, OF_ROLE, MEMBERS_ALLOWED, MEMBERS_DENIED),
        (me, OF_MEMBER, BOT_ALLOWED, 0),
    ):
        have = _have(channel, id_) if channel else None
        allow, deny = allow & can, deny & can
        wanted.append(
            Overwrite(
                id_, kind, ((have.allow if have else 0) & ~deny) | allow, ((have.deny if have else 0) & ~allow) | deny
            )
        )
    return wanted


def _have(channel: Channel, id_: str) -> Overwrite | None:
    return next((one for one in channel.overwrites if one.id == id_), None)


async def _stored_panel(outside: Gateways, server: Server, channel: Channel) -> Message | None:
    if server.panel_message_id is None:
        return None
    try:
        return await outside.discord.message(channel.id, server.panel_message_id)
    except MessageGone:
        return None


def _may_read(found: Rights, channel: Channel, me: str) -> bool:
    """Return whether the bot may read the channel's messages.

    Without Read Message History, Discord returns an empty list and no error (its documentation of Get Channel
    Messages).
    """
    bot = found.guild_with_bot()[2]
    have = _have(channel, me)
    return bot.is_admin or bool((bot.permissions | (have.allow if have else 0)) & HISTORY)


async def _panel(db: AsyncSession, outside: Gateways, found: Rights, channel: Channel, me: str) -> list[str]:
    server = found.server
    wanted = await _body(db, found.server, found.guild_with_bot()[0].name, me)
    message = await _stored_panel(outside, server, channel)
    if message is None:
        recent = await outside.discord.recent_messages(channel.id)
        if not recent and not _may_read(found, channel, me):
            raise Conflict(
                _(
                    "The bot lacks {permission} in this server, and cannot see whether its panel is there. Switch it "
                    "on for the bot's role in Server Settings › Roles."
                ).format(permission=_(_NAMES[HISTORY]))
            )
        message = next((one for one in recent if panel.is_panel(one, me)), None)
    if message is None:
        posted = await outside.discord.post_message(channel.id, wanted, secrets.token_hex(8))
        server.panel_message_id = posted.id
        return [N_("Posted the panel.")]
    server.panel_message_id = message.id
    if panel.fits(message, wanted):
        return []
    await outside.discord.edit_message(channel.id, message.id, wanted)
    return [N_("Updated the panel.")]
