"""The application's settings in Discord's Developer Portal, and how Discord wants its bot to be sharded."""

from sandbox.discord import intents
from sandbox.refusal import Refusal

# GATEWAY_GUILD_MEMBERS and GATEWAY_GUILD_MEMBERS_LIMITED: the flag says whether Discord reviewed the application
# (facts §1.2); the switch works alike in both.
_FLAGS = {"on": 1 << 14, "limited": 1 << 15, "off": 0}


class Application:
    """The switch of the Server Members intent, whether people may install the application for themselves, and the
    addresses to which OAuth2 may send people back.

    `redirects` are compared exactly; where there are none, any address of this machine will do.
    """

    def __init__(self) -> None:
        self.redirects: tuple[str, ...] = ()
        self.forget()

    def forget(self) -> None:
        """Back to how an application of this size begins."""
        self.members_intent = "limited"
        self.user_install = False
        self.shards = 1
        """As many as GET /gateway/bot recommends."""
        self.guilds_per_shard: int | None = None
        """How many guilds one shard may have; Discord's own limit is 2,500 (facts §1.8)."""

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

    def shard(self, shards: int | None, guilds_per_shard: int | None) -> None:
        """Change how many shards Discord recommends and how many guilds one may have. Raises Refusal(400)."""
        for number in (shards, guilds_per_shard):
            if number is not None and number < 1:
                raise Refusal(400, "shards and guilds_per_shard are at least 1.")
        self.shards = shards or self.shards
        self.guilds_per_shard = guilds_per_shard or self.guilds_per_shard

    @property
    def enabled(self) -> int:
        """The privileged intents that the application may use."""
        return 0 if self.members_intent == "off" else intents.GUILD_MEMBERS

    @property
    def flags(self) -> int:
        """The application's flags."""
        return _FLAGS[self.members_intent]
