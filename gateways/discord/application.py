"""Discord's facts about our own application that a start depends on."""

from dataclasses import dataclass

from gateways.discord.types import DISCORD
from gateways.transport.errors import ProviderConfused
from gateways.transport.json_shape import Shape

MEMBERS_INTENT = 1 << 14 | 1 << 15
"""The flags that show that Server Members Intent is on: GATEWAY_GUILD_MEMBERS, or GATEWAY_GUILD_MEMBERS_LIMITED for a
bot in fewer than a hundred servers."""


@dataclass(frozen=True, slots=True)
class Application:
    """Our application; `redirects` are the addresses to which sign-ins may return."""

    id: str
    name: str
    members_intent: bool
    public: bool
    needs_code_grant: bool
    redirects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionStarts:
    """The number of times that the bot may identify: `remaining` of `total` in the next `reset_after` seconds.

    `shards` is the number of shards that Discord recommends.
    """

    total: int
    remaining: int
    reset_after: float
    max_concurrency: int
    shards: int = 1


def read_session_starts(value: object) -> SessionStarts:
    """Parse the session_start_limit and the shards of GET /gateway/bot (docs/facts.md#discord-gateway)."""
    found = Shape(value, "the gateway", DISCORD)
    limit = found.inner("session_start_limit")
    return SessionStarts(
        total=limit.number("total"),
        remaining=limit.number("remaining"),
        reset_after=limit.number("reset_after") / 1000,
        max_concurrency=max(1, limit.number("max_concurrency")),
        shards=max(1, found.number("shards")),
    )


def read_application(value: object) -> Application:
    """Parse the answer of GET /applications/@me."""
    found = Shape(value, "the application", DISCORD)
    redirects = found.items("redirect_uris") if found.has("redirect_uris") else []
    if not all(isinstance(item, str) for item in redirects):
        raise ProviderConfused(DISCORD, "the application's redirects are not texts")
    return Application(
        id=found.id(),
        name=found.text("name"),
        members_intent=bool(found.number("flags") & MEMBERS_INTENT),
        public=found.flag("bot_public"),
        needs_code_grant=found.flag("bot_require_code_grant"),
        redirects=tuple(map(str, redirects)),
    )
