"""Discord's guilds, roles, members and users; and its refusals."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from gateways.transport.errors import (
    NotThere,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
)
from gateways.transport.json_shape import Shape, listed

DISCORD = "Discord"
ADMINISTRATOR = 1 << 3
"""Bit 3 (docs/facts.md#discord-permissions)."""


class RoleGone(NotThere):
    """10011: no such role (docs/facts.md#discord-error-codes)."""


class MemberGone(NotThere):
    """10007 or 10013: that user is not a member of the guild, or nobody (docs/facts.md#discord-error-codes)."""


class GuildGone(NotThere):
    """10004: no such guild (docs/facts.md#discord-error-codes)."""


class ChannelGone(NotThere):
    """10003: no such channel (docs/facts.md#discord-error-codes)."""


class MessageGone(NotThere):
    """10008: no such message (docs/facts.md#discord-error-codes)."""


class MissingAccess(ProviderRefused):
    """50001: the bot is not (or no longer) in that guild, or may not see the requested object.

    See docs/facts.md#discord-error-codes.
    """


class MissingPermissions(ProviderRefused):
    """50013 or 50028: the bot's permissions or the role hierarchy forbid it (docs/facts.md#discord-role-hierarchy)."""


class TokenRejected(Unauthorized):
    """401: Discord does not accept our token. No more requests may be sent until an operator acts."""


@dataclass(frozen=True, slots=True)
class Role:
    """A guild's role; `permissions` are its bits. A boolean tag is true if its key is present.

    See docs/facts.md#discord-roles-and-members.
    """

    id: str
    name: str
    color: int
    position: int
    managed: bool
    permissions: int
    bot_id: str | None = None
    integration_id: str | None = None
    premium_subscriber: bool = False
    available_for_purchase: bool = False
    guild_connections: bool = False
    subscription_listing_id: str | None = None

    @property
    def giver(self) -> str:
        """The system that gives the role instead of people; empty if there is none."""
        return giver(
            linked=self.guild_connections,
            booster=self.premium_subscriber,
            shop=self.available_for_purchase or self.subscription_listing_id is not None,
            bot=self.bot_id is not None,
            integration=self.integration_id is not None,
        )


def giver(*, linked: bool, booster: bool, shop: bool, bot: bool, integration: bool) -> str:
    """Return which of these systems gives a role instead of people, according to its tags; empty if none does.

    See docs/facts.md#discord-roles-and-members.
    """
    # A shop's or a bot's role also belongs to an integration, so that tag comes last.
    tags = {"linked": linked, "booster": booster, "shop": shop, "bot": bot, "integration": integration}
    return next((name for name, is_so in tags.items() if is_so), "")


@dataclass(frozen=True, slots=True)
class Guild:
    """A guild of the bot, with all its roles."""

    id: str
    name: str
    icon: str | None
    owner_id: str
    roles: tuple[Role, ...]


def shown_name(username: str, global_name: str | None, nick: str | None = None) -> str:
    """Return a user's nickname in a guild, else the global name, else the username (docs/facts.md#discord-users)."""
    return nick or global_name or username


@dataclass(frozen=True, slots=True)
class GuildMember:
    """A user in a guild.

    `roles` never contains @everyone. `pending` means that membership screening is not finished. `avatar` is the user's
    own (the CDN's `avatars/{user}/{hash}`), not one for this guild.
    """

    user_id: str
    username: str
    global_name: str | None
    nick: str | None
    avatar: str | None
    roles: frozenset[str]
    pending: bool
    bot: bool = False
    joined_at: datetime | None = None
    """When the user last joined the guild; Discord may leave it out.

    See docs/facts.md#discord-roles-and-members.
    """
    read_at: datetime | None = None
    """When the member was read, by Discord's clock, rounded down to the second."""
    asked_at: float = field(default_factory=time.monotonic, compare=False)
    """When the answer was asked for, in monotonic seconds: what happened later may be missing from it."""

    @property
    def display_name(self) -> str:
        """The name that the guild shows."""
        return shown_name(self.username, self.global_name, self.nick)


@dataclass(frozen=True, slots=True)
class BotUser:
    """A user as the bot sees it; for `me()` the bot itself."""

    id: str
    username: str
    global_name: str | None
    avatar: str | None
    bot: bool

    @property
    def display_name(self) -> str:
        """The name that Discord shows outside of guilds."""
        return shown_name(self.username, self.global_name)


@dataclass(frozen=True, slots=True)
class BotGuild:
    """One entry of the bot's own guild list; `members` is the approximate number of members."""

    id: str
    name: str
    icon: str | None
    members: int = 0


@dataclass(frozen=True, slots=True)
class OAuthUser:
    """The person who signed in; `discriminator` is "0" for migrated names (docs/facts.md#discord-users)."""

    id: str
    username: str
    global_name: str | None
    avatar: str | None
    discriminator: str


@dataclass(frozen=True, slots=True)
class UserGuild:
    """A guild of the person who signed in, with that person's own permissions there."""

    id: str
    name: str
    icon: str | None
    owner: bool
    permissions: int

    @property
    def is_admin(self) -> bool:
        """Whether the person owns the guild or has the Administrator permission."""
        return self.owner or bool(self.permissions & ADMINISTRATOR)


def read_role(value: object) -> Role:
    """Parse a role object. A true tag is a key that is present with null (docs/facts.md#discord-roles-and-members)."""
    role = Shape(value, "a role", DISCORD)
    tags = role.inner("tags") if role.has("tags") else Shape({}, "tags", DISCORD)
    return Role(
        id=role.id(),
        name=role.text("name"),
        color=role.number("color"),
        position=role.number("position"),
        managed=role.flag("managed"),
        permissions=role.number("permissions"),
        bot_id=tags.text_or_none("bot_id"),
        integration_id=tags.text_or_none("integration_id"),
        premium_subscriber=tags.has("premium_subscriber"),
        available_for_purchase=tags.has("available_for_purchase"),
        guild_connections=tags.has("guild_connections"),
        subscription_listing_id=tags.text_or_none("subscription_listing_id"),
    )


def read_roles(value: object, guild_id: str) -> tuple[Role, ...]:
    """Parse a guild's roles. Raises ProviderConfused for a list without @everyone, whose id is the guild's."""
    roles = tuple(read_role(item) for item in listed(value, "the list of roles", DISCORD))
    if all(role.id != guild_id for role in roles):
        raise ProviderConfused(DISCORD, "the list of roles lacks @everyone")
    return roles


def read_guild(value: object, guild_id: str) -> Guild:
    """Parse a guild object. Raises ProviderConfused if it is not the requested guild."""
    guild = Shape(value, "the guild", DISCORD)
    if guild.id() != guild_id:
        raise ProviderConfused(DISCORD, "another guild than the one asked for")
    return Guild(
        id=guild_id,
        name=guild.text("name"),
        icon=guild.text_or_none("icon"),
        owner_id=guild.id("owner_id"),
        roles=read_roles(guild.items("roles"), guild_id),
    )


def read_member(value: object, user_id: str) -> GuildMember:
    """Parse a member object. Raises ProviderConfused if it is not the requested user."""
    member = Shape(value, "the member", DISCORD)
    user = member.inner("user")
    if user.id() != user_id:
        raise ProviderConfused(DISCORD, "another member than the one asked for")
    roles = [item for item in member.items("roles") if isinstance(item, str)]
    if len(roles) != len(member.items("roles")):
        raise ProviderConfused(DISCORD, "the member's roles are not ids")
    return GuildMember(
        user_id=user_id,
        username=user.text("username"),
        global_name=user.text_or_none("global_name"),
        nick=member.text_or_none("nick"),
        avatar=user.text_or_none("avatar"),
        roles=frozenset(roles),
        pending=member.flag("pending", default=False),
        bot=user.flag("bot", default=False),
        joined_at=_moment(member.text_or_none("joined_at")),
    )


def _moment(said: str | None) -> datetime | None:
    """Parse an ISO 8601 time; return None for an absent or unreadable one."""
    if said is None:
        return None
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def read_user(value: object) -> BotUser:
    """Parse a user object as the bot receives it."""
    user = Shape(value, "the user", DISCORD)
    return BotUser(
        id=user.id(),
        username=user.text("username"),
        global_name=user.text_or_none("global_name"),
        avatar=user.text_or_none("avatar"),
        bot=user.flag("bot", default=False),
    )


_GONE: dict[int, type[NotThere]] = {
    10003: ChannelGone, 10004: GuildGone, 10007: MemberGone, 10008: MessageGone, 10011: RoleGone, 10013: MemberGone,
}  # fmt: skip
_PASSING = frozenset({40333})
"""Codes that come with a 4xx although the fault is Discord's own: 40333, internal network error."""
_FORBIDDEN: dict[int, type[ProviderRefused]] = {
    50001: MissingAccess,
    50013: MissingPermissions,
    50028: MissingPermissions,
}


def refusal(status: int, body: object) -> ProviderError:
    """Return the error for a 4xx answer (not 429), according to Discord's own code (docs/facts.md#discord-error-codes).

    A refusal without Discord's `{code, message}` comes from a proxy in front of Discord; such a 404 says nothing about
    the guild, member or role.
    """
    fields: Mapping[str, object] = cast("Mapping[str, object]", body) if isinstance(body, Mapping) else {}
    code, message = fields.get("code"), fields.get("message")
    said = message if isinstance(message, str) else f"HTTP {status}"
    if status == 401:
        return TokenRejected(DISCORD, said, status=status, code=code if isinstance(code, int) else None)
    if not isinstance(code, int):
        if status == 404:
            return ProviderConfused(DISCORD, "HTTP 404 that is not Discord's own")
        return ProviderRefused(DISCORD, said, status=status)
    if code in _PASSING:
        return ProviderDown(DISCORD, said)
    if code in _FORBIDDEN:
        return _FORBIDDEN[code](DISCORD, said, status=status, code=code)
    if status == 404:
        return _GONE.get(code, NotThere)(DISCORD, said, status=status, code=code)
    return ProviderRefused(DISCORD, said, status=status, code=code)
