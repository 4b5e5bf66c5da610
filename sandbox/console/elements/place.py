"""Where a person is in the console: who they are, the server, the channel, a tool. All of it is in the address."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from sandbox.discord import LocalDiscord
from sandbox.discord.world import permissions
from sandbox.discord.world.entities import Channel, Guild, User

PANELS = {"servers": "Servers", "chains": "Chains", "profiles": "Profiles", "faults": "Faults"}


@dataclass(frozen=True)
class Place:
    """A place in the console.

    `guild` and `channel` are None where the person is in none, or sees none. `panel` names an open tool, and `at` the
    server or chain that it shows.
    """

    user: User
    guild: Guild | None
    channel: Channel | None
    panel: str | None = None
    said: str | None = None
    typed: str | None = None
    modal: str | None = None
    at: str | None = None

    def url(self, **changes: str | None) -> str:
        """Return the address of this place with some values changed; None leaves one out."""
        here: dict[str, str | None] = {
            "as": self.user.username,
            "guild": self.guild.id if self.guild else None,
            "channel": self.channel.id if self.channel else None,
            "panel": self.panel,
            "at": self.at,
        }
        query = {name: value for name, value in (here | changes).items() if value is not None}
        return "/console?" + urlencode(query)


def find(discord: LocalDiscord, query: Mapping[str, str]) -> Place:
    """Return the place that the address names; whatever does not exist (any more) is replaced by the first one."""
    people = [user for user in discord.world.users.values() if not user.bot]
    named = discord.user_called(query.get("as", ""))
    user = named if named is not None and not named.bot else people[0]
    mine = guilds_of(discord, user)
    guild = next((one for one in mine if query.get("guild") in (one.id, one.name)), mine[0] if mine else None)
    channels = visible(guild, user) if guild else []
    wanted = query.get("channel")
    channel = next((one for one in channels if wanted in (one.id, one.name)), channels[0] if channels else None)
    panel = query.get("panel")
    return Place(
        user,
        guild,
        channel,
        panel if panel in PANELS else None,
        query.get("said"),
        query.get("typed"),
        query.get("modal"),
        query.get("at"),
    )


def guilds_of(discord: LocalDiscord, user: User) -> list[Guild]:
    """Return the servers that the person is in."""
    return [guild for guild in discord.world.guilds.values() if user.id in guild.members]


def visible(guild: Guild, user: User) -> list[Channel]:
    """Return the channels that the member sees, in the server's order."""
    member = guild.members[user.id]
    return [
        channel
        for channel in sorted(guild.channels.values(), key=lambda one: (one.position, int(one.id)))
        if permissions.channel_permissions(guild, channel, member) & permissions.VIEW_CHANNEL
    ]
