"""What Discord knows: users, guilds, roles, members, channels, messages, commands and grants.

Ids are snowflakes as text, permission sets are ints, times are ISO 8601 text as Discord writes them.
"""

from dataclasses import dataclass, field
from typing import Any

TEXT_CHANNEL = 0
EPHEMERAL = 64


@dataclass
class User:
    """An account.

    `bot` marks the application's own bot and those of other applications. `crowd` marks one of the many who only fill a
    guild and never sign in.
    """

    id: str
    username: str
    global_name: str | None
    avatar: str | None
    bot: bool = False
    crowd: bool = False


@dataclass
class Role:
    """A role of a guild; @everyone has the guild's id and position 0. `bot_id` is set on a bot's managed role.

    `tags` are Discord's further tags; one that is simply true has the value null.
    """

    id: str
    guild_id: str
    name: str
    permissions: int
    position: int
    color: int = 0
    hoist: bool = False
    managed: bool = False
    mentionable: bool = False
    bot_id: str | None = None
    tags: dict[str, str | None] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)
    """Further fields in Discord's own form, for example of a gradient."""

    @property
    def is_given_by_discord(self) -> bool:
        """Whether only Discord or an integration gives the role, so that nobody can give it by hand."""
        return self.managed or bool(self.tags)


@dataclass
class Member:
    """A user in a guild; `roles` has no @everyone."""

    guild_id: str
    user_id: str
    joined_at: str
    roles: list[str] = field(default_factory=list)
    nick: str | None = None
    pending: bool = False
    timeout_until: str | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    """Further fields in Discord's own form, for example an avatar for this guild."""


@dataclass
class Overwrite:
    """What a channel changes for a role (type 0) or a member (type 1)."""

    id: str
    type: int
    allow: int
    deny: int


@dataclass
class Channel:
    """A channel of a guild."""

    id: str
    guild_id: str
    name: str
    type: int = TEXT_CHANNEL
    position: int = 0
    topic: str | None = None
    nsfw: bool = False
    parent_id: str | None = None
    slowmode: int = 0
    last_message_id: str | None = None
    overwrites: list[Overwrite] = field(default_factory=list)
    extras: dict[str, Any] = field(default_factory=dict)
    """The fields that only its type has, in Discord's own form."""


@dataclass
class Message:
    """A message; an ephemeral one has `seen_by`, lives with its interaction and is never in a channel."""

    id: str
    channel_id: str
    author_id: str
    content: str
    timestamp: str
    embeds: list[dict[str, Any]] = field(default_factory=list)
    components: list[dict[str, Any]] = field(default_factory=list)
    flags: int = 0
    edited_timestamp: str | None = None
    type: int = 0
    webhook_id: str | None = None
    nonce: str | int | None = None
    seen_by: str | None = None
    mentions: list[dict[str, Any]] = field(default_factory=list)
    mention_roles: list[str] = field(default_factory=list)
    mention_everyone: bool = False
    replies_to: str | None = None
    """The id of the message that this one answers, in the same channel."""


@dataclass
class Guild:
    """A guild with everything in it, by id.

    `offers` has what the guild's admins chose about seeing commands: command id → role or user id → whether they see
    it.
    """

    id: str
    name: str
    owner_id: str
    icon: str | None
    offers: dict[str, dict[str, bool]] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)
    """Further fields in Discord's own form."""
    live: dict[str, Any] = field(default_factory=dict)
    """What only GUILD_CREATE has: threads, calls, events, and the number of members that Discord reports."""
    roles: dict[str, Role] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)

    @property
    def everyone(self) -> Role:
        """The role that everybody has."""
        return self.roles[self.id]


@dataclass
class Command:
    """An application command; `definition` is what the application sent, in Discord's shape."""

    id: str
    version: str
    guild_id: str | None
    definition: dict[str, Any]


@dataclass
class Grant:
    """One exchange of a code.

    It has an access token (the id), its refresh token, the user, and the end in epoch seconds. Revoking any of a user's
    grants revokes them all, since they belong to one authorisation.
    """

    id: str
    refresh: str
    user_id: str
    scopes: list[str]
    expires_at: float


@dataclass
class AuditEntry:
    """Something done to a guild, by whom and why, as its audit log shows it."""

    id: str
    guild_id: str
    actor_id: str
    action: str
    target: str
    reason: str | None
    changes: list[dict[str, Any]] = field(default_factory=list)
