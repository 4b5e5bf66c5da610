"""The application's settings in Discord's Developer Portal, as far as the bot depends on them."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from sandbox.base.refusal import Refusal
from sandbox.discord.world import intents

# GATEWAY_GUILD_MEMBERS and GATEWAY_GUILD_MEMBERS_LIMITED: the flag shows whether Discord reviewed the application
# (docs/facts.md#discord-application-flags); the switch works the same way for both.
_FLAGS = {"on": 1 << 14, "limited": 1 << 15, "off": 0}


GUILDS_PER_SHARD = 2_500
"""The most guilds of one session; Discord refuses a session with more (docs/facts.md#discord-gateway)."""
MOST_SHARDS = 1_000


@dataclass
class Application:
    """The application's settings.

    `members_intent` is the switch of the Server Members intent, `user_install` whether people may install the
    application for themselves. The bot is split into `advised_shards` (0: as many as needed) of at most
    `guilds_per_shard`. `registered` are the addresses to which OAuth2 may send people back, compared exactly; all
    addresses of this machine for an empty list, and None until somebody registers any.
    """

    members_intent: str = "limited"
    user_install: bool = False
    advised_shards: int = 0
    guilds_per_shard: int = GUILDS_PER_SHARD
    registered: list[str] | None = None

    def split(self, shards: int | None, guilds_per_shard: int | None) -> None:
        """Recommend a number of shards (0: as many as needed) of at most so many guilds. Raises Refusal(400)."""
        if shards is not None and not 0 <= shards <= MOST_SHARDS:
            raise Refusal(400, f"shards is between 0 and {MOST_SHARDS}.")
        if guilds_per_shard is not None and guilds_per_shard < 1:
            raise Refusal(400, "guilds_per_shard is at least 1.")
        self.advised_shards = self.advised_shards if shards is None else shards
        self.guilds_per_shard = self.guilds_per_shard if guilds_per_shard is None else guilds_per_shard

    def shards(self, guilds: int) -> int:
        """Return how many shards GET /gateway/bot recommends to a bot in so many guilds."""
        return self.advised_shards or max(1, -(-guilds // self.guilds_per_shard))

    def set_intent(self, members_intent: str) -> None:
        """Turn the intent on, as a reviewed or an unreviewed application, or off. Raises Refusal(400)."""
        if members_intent not in _FLAGS:
            raise Refusal(400, f"members_intent is one of: {', '.join(_FLAGS)}.")
        self.members_intent = members_intent

    def register(self, redirects: object) -> None:
        """Register these addresses instead of the present ones. Raises Refusal(400)."""
        if not isinstance(redirects, list) or not all(isinstance(each, str) for each in redirects):
            raise Refusal(400, "redirect_uris is a list of addresses.")
        for redirect in redirects:
            if not is_redirect(redirect):
                raise Refusal(400, f"{redirect!r} is not an address.")
        self.registered = redirects

    @property
    def enabled(self) -> int:
        """The privileged intents that the application may use."""
        return 0 if self.members_intent == "off" else intents.GUILD_MEMBERS

    @property
    def flags(self) -> int:
        """The application's flags."""
        return _FLAGS[self.members_intent]


def is_redirect(text: str) -> bool:
    """Return whether a browser can be sent there: an address has no control characters (RFC 3986 section 2)."""
    try:
        urlsplit(text)
    except ValueError:
        return False
    return not re.search(r"[\x00-\x1f\x7f]", text)
