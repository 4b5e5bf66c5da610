"""Permission bits, what a member may do, and which roles are above which (docs/facts.md#discord-permissions)."""

from datetime import UTC, datetime

from sandbox.discord.world.entities import Channel, Guild, Member, Role

KICK_MEMBERS = 1 << 1
ADMINISTRATOR = 1 << 3
MANAGE_CHANNELS = 1 << 4
MANAGE_GUILD = 1 << 5
VIEW_AUDIT_LOG = 1 << 7
VIEW_CHANNEL = 1 << 10
SEND_MESSAGES = 1 << 11
SEND_TTS_MESSAGES = 1 << 12
MANAGE_MESSAGES = 1 << 13
EMBED_LINKS = 1 << 14
ATTACH_FILES = 1 << 15
READ_MESSAGE_HISTORY = 1 << 16
MENTION_EVERYONE = 1 << 17
CHANGE_NICKNAME = 1 << 26
MANAGE_NICKNAMES = 1 << 27
MANAGE_ROLES = 1 << 28
USE_APPLICATION_COMMANDS = 1 << 31
MODERATE_MEMBERS = 1 << 40

ALL = (1 << 53) - 1 & ~(1 << 47)
# Create invite, add reactions, stream, external emojis, connect, speak and voice activity, besides the named ones.
EVERYONE_AT_START = (
    1 << 0 | 1 << 6 | 1 << 9 | 1 << 18 | 1 << 20 | 1 << 21 | 1 << 25
    | VIEW_CHANNEL | SEND_MESSAGES | EMBED_LINKS | ATTACH_FILES | READ_MESSAGE_HISTORY
    | CHANGE_NICKNAME | USE_APPLICATION_COMMANDS
)  # fmt: skip
_WITH_SENDING = MENTION_EVERYONE | SEND_TTS_MESSAGES | ATTACH_FILES | EMBED_LINKS

Rank = tuple[int, int]


def rank(role: Role) -> Rank:
    """Return a comparable height: position first; on a tie the lower id is higher."""
    return role.position, -int(role.id)


def ascending(guild: Guild) -> list[Role]:
    """Return the guild's roles from the bottom."""
    return sorted(guild.roles.values(), key=rank)


def top_role(guild: Guild, member: Member) -> Role:
    """Return the member's highest role; @everyone if there is no other."""
    held = [guild.roles[role_id] for role_id in member.roles if role_id in guild.roles]
    return max([guild.everyone, *held], key=rank)


def stands_above(guild: Guild, member: Member, role: Role) -> bool:
    """Return whether the hierarchy lets the member grant, edit or sort the role."""
    return member.user_id == guild.owner_id or rank(top_role(guild, member)) > rank(role)


def guild_permissions(guild: Guild, member: Member) -> int:
    """Return the permissions from ownership and roles, without channel overwrites."""
    if member.user_id == guild.owner_id:
        return ALL
    granted = guild.everyone.permissions
    for role_id in member.roles:
        if role_id in guild.roles:
            granted |= guild.roles[role_id].permissions
    if granted & ADMINISTRATOR:
        return ALL
    return granted & (VIEW_CHANNEL | READ_MESSAGE_HISTORY) if timed_out(member) else granted


def timed_out(member: Member) -> bool:
    """Return whether the member's time-out is still running."""
    return member.timeout_until is not None and datetime.fromisoformat(member.timeout_until) > datetime.now(UTC)


def channel_permissions(guild: Guild, channel: Channel, member: Member) -> int:
    """Return the permissions in the channel: @everyone's overwrite, then the roles' together, then the member's own."""
    granted = guild_permissions(guild, member)
    if granted & ADMINISTRATOR:
        return ALL
    overwrites = {overwrite.id: overwrite for overwrite in channel.overwrites}
    if everyone := overwrites.get(guild.id):
        granted = granted & ~everyone.deny | everyone.allow
    of_roles = [overwrites[role_id] for role_id in member.roles if role_id in overwrites]
    denied = allowed = 0
    for overwrite in of_roles:
        denied, allowed = denied | overwrite.deny, allowed | overwrite.allow
    granted = granted & ~denied | allowed
    if own := overwrites.get(member.user_id):
        granted = granted & ~own.deny | own.allow
    if not granted & VIEW_CHANNEL:
        return 0
    if timed_out(member):
        granted &= VIEW_CHANNEL | READ_MESSAGE_HISTORY
    return granted if granted & SEND_MESSAGES else granted & ~_WITH_SENDING


def may_manage(guild: Guild, member: Member) -> bool:
    """Return whether the member may add a bot: owner, Administrator or Manage Server."""
    return bool(guild_permissions(guild, member) & (ADMINISTRATOR | MANAGE_GUILD))
