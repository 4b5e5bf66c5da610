"""Discord's channels and messages, which the bot creates, reads and repairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateways.discord.calls import DiscordCalls
from gateways.discord.types import DISCORD
from gateways.transport.errors import ProviderConfused
from gateways.transport.json_shape import Shape, listed

TEXT_CHANNEL = 0
OF_ROLE, OF_MEMBER = 0, 1
RECENT = 50
MOST_KNOWN = 100_000
"""The most channels whose guild is remembered."""
NO_MENTIONS: Mapping[str, object] = {"parse": []}


@dataclass(frozen=True, slots=True)
class Overwrite:
    """The permission bits that a channel allows and denies to a role (`kind` 0) or a member (1)."""

    id: str
    kind: int
    allow: int
    deny: int


@dataclass(frozen=True, slots=True)
class Channel:
    """A guild's channel; `kind` 0 is a text channel."""

    id: str
    guild_id: str
    name: str
    kind: int
    topic: str | None
    overwrites: tuple[Overwrite, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message with its embeds and components as Discord returned them."""

    id: str
    author_id: str
    content: str
    embeds: tuple[object, ...]
    components: tuple[object, ...]


class ChannelCalls(DiscordCalls):
    """The calls about channels and messages. Each raises a ProviderError when there is no usable answer.

    See docs/facts.md#discord-channels and docs/facts.md#discord-messages.
    """

    def __init__(self) -> None:
        self._guild_of: dict[str, str] = {}

    def guild_of(self, template: str, ids: Sequence[str]) -> str:
        """Return the id of the guild that a request concerns, or "".

        For a channel whose guild is unknown, return the channel's id.
        """
        if template.startswith("/guilds/{}"):
            return ids[0]
        return self._guild_of.get(ids[0], ids[0]) if template.startswith("/channels/{}") else ""

    def _met(self, channels: Sequence[Channel]) -> None:
        if len(self._guild_of) + len(channels) > MOST_KNOWN:
            self._guild_of.clear()
        self._guild_of.update((channel.id, channel.guild_id) for channel in channels)

    async def channels(self, guild_id: str) -> list[Channel]:
        """Return all channels of a guild except threads (GET /guilds/{guild}/channels)."""
        answer = await self._request("GET", "/guilds/{}/channels", (guild_id,))
        found = [read_channel(item) for item in listed(answer, "the list of channels", DISCORD)]
        self._met(found)
        return found

    async def channel(self, channel_id: str) -> Channel:
        """Return one channel (GET /channels/{channel}).

        Raises ChannelGone when there is none, MissingAccess when the bot may not see it.
        """
        found = read_channel(await self._request("GET", "/channels/{}", (channel_id,)))
        if found.id != channel_id:
            raise ProviderConfused(DISCORD, "another channel than the one asked for")
        self._met([found])
        return found

    async def create_channel(
        self, guild_id: str, name: str, topic: str, overwrites: Sequence[Overwrite], reason: str
    ) -> Channel:
        """Create a text channel (POST /guilds/{guild}/channels; 201).

        The request is never sent twice. After ProviderDown the channel may exist nevertheless, so read `channels`.
        """
        body = {
            "name": name, "type": TEXT_CHANNEL, "topic": topic,
            "permission_overwrites": [{"id": one.id, **_bits(one)} for one in overwrites],
        }  # fmt: skip
        answer = await self._request("POST", "/guilds/{}/channels", (guild_id,), body=body, reason=reason, once=True)
        return read_channel(answer)

    async def set_overwrite(self, channel_id: str, overwrite: Overwrite, reason: str) -> None:
        """Set what the channel allows and denies one role or member, without changing others.

        PUT /channels/{channel}/permissions/{id}; 204.
        """
        ids = (channel_id, overwrite.id)
        await self._request("PUT", "/channels/{}/permissions/{}", ids, body=_bits(overwrite), reason=reason)

    async def message(self, channel_id: str, message_id: str) -> Message:
        """Return one message (GET /channels/{channel}/messages/{message}). Raises MessageGone when there is none."""
        return read_message(await self._request("GET", "/channels/{}/messages/{}", (channel_id, message_id)))

    async def recent_messages(self, channel_id: str) -> list[Message]:
        """Return the newest messages of a channel, newest first (GET /channels/{channel}/messages)."""
        answer = await self._request("GET", "/channels/{}/messages", (channel_id,), query=f"?limit={RECENT}")
        return [read_message(item) for item in listed(answer, "the list of messages", DISCORD)]

    async def post_message(self, channel_id: str, body: Mapping[str, object], nonce: str) -> Message:
        """Post a message that mentions nobody (POST /channels/{channel}/messages).

        A repeat with the same `nonce` within some minutes posts nothing: with `enforce_nonce`, Discord returns the
        first message.
        """
        whole = {**body, "allowed_mentions": NO_MENTIONS, "nonce": nonce, "enforce_nonce": True}
        return read_message(await self._request("POST", "/channels/{}/messages", (channel_id,), body=whole))

    async def edit_message(self, channel_id: str, message_id: str, body: Mapping[str, object]) -> Message:
        """Change a message of the bot's own (PATCH /channels/{channel}/messages/{message})."""
        whole = {**body, "allowed_mentions": NO_MENTIONS}
        ids = (channel_id, message_id)
        return read_message(await self._request("PATCH", "/channels/{}/messages/{}", ids, body=whole))


def _bits(overwrite: Overwrite) -> dict[str, object]:
    """Return an overwrite as JSON, with its bits as decimal strings (docs/facts.md#discord-permissions)."""
    return {"type": overwrite.kind, "allow": str(overwrite.allow), "deny": str(overwrite.deny)}


def read_channel(value: object) -> Channel:
    """Parse a channel object of a guild."""
    channel = Shape(value, "a channel", DISCORD)
    overwrites = channel.items("permission_overwrites") if channel.has("permission_overwrites") else []
    return Channel(
        id=channel.id(),
        guild_id=channel.id("guild_id"),
        name=channel.text("name"),
        kind=channel.number("type"),
        topic=channel.text_or_none("topic"),
        overwrites=tuple(_read_overwrite(item) for item in overwrites),
    )


def _read_overwrite(value: object) -> Overwrite:
    overwrite = Shape(value, "an overwrite", DISCORD)
    return Overwrite(overwrite.id(), overwrite.number("type"), overwrite.number("allow"), overwrite.number("deny"))


def read_message(value: object) -> Message:
    """Parse a message object."""
    message = Shape(value, "a message", DISCORD)
    return Message(
        id=message.id(),
        author_id=message.inner("author").id(),
        content=message.text("content"),
        embeds=tuple(message.items("embeds")),
        components=tuple(message.items("components")) if message.has("components") else (),
    )
