"""The objects behind the ids in an interaction: users, members, roles and channels, in Discord's form."""

from dataclasses import dataclass, field
from typing import Any

from sandbox.base.refusal import Refusal
from sandbox.discord.world import permissions, shapes
from sandbox.discord.world.entities import Guild, Member
from sandbox.discord.world.lookup import find_role, find_user
from sandbox.discord.world.protocols import Discord

Resolved = dict[str, dict[str, Any]]


@dataclass
class Resolving:
    """Collects the objects behind the ids that one person chose; `found` is the interaction's `resolved`."""

    discord: Discord
    guild: Guild
    chooser: Member
    found: Resolved = field(default_factory=dict[str, dict[str, Any]])

    def user(self, wanted: str) -> str:
        """Return the id of a user by id or name, and collect their member if there is one. Raises Refusal(404)."""
        user = find_user(self.discord, wanted)
        self.found.setdefault("users", {})[user.id] = shapes.user(user)
        if member := self.guild.members.get(user.id):
            shape = shapes.member(member, user)
            for left_out in ("user", "deaf", "mute"):
                del shape[left_out]
            shape["permissions"] = str(permissions.guild_permissions(self.guild, member))
            self.found.setdefault("members", {})[user.id] = shape
        return user.id

    def role(self, wanted: str) -> str:
        """Return the id of a role by id or name. Raises Refusal(404)."""
        role = find_role(self.guild, wanted)
        self.found.setdefault("roles", {})[role.id] = shapes.role(role)
        return role.id

    def channel(self, wanted: str) -> str:
        """Return the id of a channel by id or name; its permissions are those of the chooser. Raises Refusal(404)."""
        channel = next((one for one in self.guild.channels.values() if wanted in (one.id, one.name)), None)
        if channel is None:
            raise Refusal(404, f"{self.guild.name} has no channel {wanted!r}.")
        granted = permissions.channel_permissions(self.guild, channel, self.chooser)
        shape = {**shapes.channel(channel), "permissions": str(granted)}
        self.found.setdefault("channels", {})[channel.id] = shape
        return channel.id

    def mentionable(self, wanted: str) -> str:
        """Return the id of a role or of a user. Raises Refusal(404)."""
        is_role = any(wanted in (role.id, role.name) for role in self.guild.roles.values())
        return self.role(wanted) if is_role else self.user(wanted)
