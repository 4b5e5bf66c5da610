"""The application's settings in Discord's Developer Portal, as far as the bot depends on them."""

from sandbox.base.refusal import Refusal
from sandbox.discord.world import intents

# GATEWAY_GUILD_MEMBERS and GATEWAY_GUILD_MEMBERS_LIMITED: the flag shows whether Discord reviewed the application
# (docs/facts.md#discord-application-flags); the switch works the same way for both.
_FLAGS = {"on": 1 << 14, "limited": 1 << 15, "off": 0}


GUILDS_PER_SHARD = 2_500
"""The most guilds of one session; Discord refuses a session with more (docs/facts.md#discord-gateway)."""
MOST_SHARDS = 1_000


class Application:
    """The application's settings.

    They are the switch of the Server Members intent, whether people may install the application for themselves, the
    addresses to which OAuth2 may send people back, and how the bot must be split into shards.

    `redirects` are compared exactly; if there are none, every address of this machine is accepted.
    """

    def __init__(self) -> None:
        self.redirects: tuple[str, ...] = ()
        self.forget()

    def forget(self) -> None:
        """Restore the settings with which an application of this size begins."""
        self.members_intent = "limited"
        self.user_install = False
        self._shards = 0
        self.guilds_per_shard = GUILDS_PER_SHARD

    def split(self, shards: int | None, guilds_per_shard: int | None) -> None:
        """Recommend a number of shards (0: as many as needed) of at most so many guilds. Raises Refusal(400)."""
        if shards is not None and not 0 <= shards <= MOST_SHARDS:
            raise Refusal(400, f"shards is between 0 and {MOST_SHARDS}.")
        if guilds_per_shard is not None and guilds_per_shard < 1:
            raise Refusal(400, "guilds_per_shard is at least 1.")
        self._shards = self._shards if shards is None else shards
        self.guilds_per_shard = self.guilds_per_shard if guilds_per_shard is None else guilds_per_shard

    def shards(self, guilds: int) -> int:
        """Return how many shards GET /gateway/bot recommends to a bot in so many guilds."""
        return self._shards or max(1, -(-guilds // self.guilds_per_shard))

    def set_intent(self, members_intent: str) -> None:
        """Turn the intent on, as a reviewed or an unreviewed application, or off. Raises Refusal(400)."""
        if members_intent not in _FLAGS:
            raise Refusal(400, f"members_intent is one of: {', '.join(_FLAGS)}.")
        self.members_intent = members_intent

    def register(self, redirects: object) -> None:
        """Register these addresses instead of the present ones. Raises Refusal(400)."""
        if not isinstance(redirects, list) or not all(isinstance(each, str) for each in redirects):
            raise Refusal(400, "redirect_uris is a list of addresses.")
        self.redirects = tuple(redirects)

    @property
    def enabled(self) -> int:
        """The privileged intents that the application may use."""
        return 0 if self.members_intent == "off" else intents.GUILD_MEMBERS

    @property
    def flags(self) -> int:
        """The application's flags."""
        return _FLAGS[self.members_intent]
