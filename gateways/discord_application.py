"""What Discord knows of our own application, as far as a start depends on it."""

from dataclasses import dataclass

from gateways.discord_types import DISCORD
from gateways.errors import ProviderConfused
from gateways.shapes import Shape

MEMBERS_INTENT = 1 << 14 | 1 << 15
"""GATEWAY_GUILD_MEMBERS, or its _LIMITED for a bot in fewer than a hundred servers: Server Members Intent is on."""


@dataclass(frozen=True, slots=True)
class Application:
    """Our application; `redirects` are the addresses that sign-ins may return to."""

    id: str
    name: str
    members_intent: bool
    public: bool
    needs_code_grant: bool
    redirects: tuple[str, ...]


def read_application(value: object) -> Application:
    """The answer of GET /applications/@me."""
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
