"""The world at the start: six people, three guilds, fixed ids."""

from collections.abc import Iterable, Iterator

from sandbox.base.people import PEOPLE, person
from sandbox.discord.world.entities import Channel, Guild, Member, Role, User
from sandbox.discord.world.permissions import ADMINISTRATOR, EVERYONE_AT_START, KICK_MEMBERS

BOT_NAME = "HoldfastBot"
BOT_PERMISSIONS = 2416004112
JOINED = "2025-01-15T12:00:00.000000+00:00"
ABOVE_BOT, BELOW_BOT = "Founder", "Admin"
ROLE_NAMES = ("Holder", "Collector", "Whale", "Moderator", BELOW_BOT, ABOVE_BOT)
_PERMISSIONS = {"Moderator": KICK_MEMBERS, BELOW_BOT: ADMINISTRATOR}
_COLORS = {"Holder": 0x2ECC71, "Collector": 0x3498DB, "Whale": 0x9B59B6, "Admin": 0xE67E22, "Founder": 0xF1C40F}


def users(bot_id: str) -> list[User]:
    """Return the people and the application's bot."""
    people = [User(p.id, p.username, p.global_name, p.avatar) for p in PEOPLE]
    return [*people, User(bot_id, BOT_NAME, None, None, bot=True)]


def guilds(bot_id: str) -> list[Guild]:
    """Return three complete guilds, new objects at every call."""
    club = _guild(1, "Cool Holders Club", "c1abc0ffee0000000000000000000001", "ada", ["bob"], "carol dave erin mallory")
    base = _guild(2, "Base Builders", None, "ada", ["bob"], "carol dave erin mallory")
    quiet = _guild(3, "Quiet Corner", "90e7c0ffee0000000000000000000003", "erin", [], "bob carol")
    _add_bot(base, bot_id)
    return [club, base, quiet]


def _guild(number: int, name: str, icon: str | None, owner: str, admins: Iterable[str], others: str) -> Guild:
    guild_id = f"117000000000000{number}000"
    ids = (str(int(guild_id) + offset) for offset in (*range(1, len(ROLE_NAMES) + 1), 100))
    owner_id, admin_ids = person(owner).id, [person(admin).id for admin in admins]
    return furnished(guild_id, name, icon, owner_id, admin_ids, [person(other).id for other in others.split()], ids)


def furnished(
    guild_id: str,
    name: str,
    icon: str | None,
    owner_id: str,
    admins: Iterable[str],
    others: Iterable[str],
    ids: Iterator[str],
) -> Guild:
    """Return a guild with the usual roles, members by user id, and a #general.

    `ids` provides the ids of its roles and its channel.
    """
    guild = Guild(guild_id, name, owner_id, icon)
    guild.roles[guild_id] = Role(guild_id, guild_id, "@everyone", EVERYONE_AT_START, 0)
    by_name: dict[str, str] = {}
    for position, role_name in enumerate(ROLE_NAMES, start=1):
        role_id = by_name[role_name] = next(ids)
        permissions, color = _PERMISSIONS.get(role_name, 0), _COLORS.get(role_name, 0)
        guild.roles[role_id] = Role(role_id, guild_id, role_name, permissions, position, color)
    held = {owner_id: [by_name[ABOVE_BOT]], **{admin: [by_name[BELOW_BOT]] for admin in admins}}
    for user_id in (*held, *others):
        guild.members[user_id] = Member(guild_id, user_id, JOINED, held.get(user_id, []))
    channel_id = next(ids)
    guild.channels[channel_id] = Channel(channel_id, guild_id, "general")
    return guild


def _add_bot(guild: Guild, bot_id: str) -> None:
    founder = next(role for role in guild.roles.values() if role.name == ABOVE_BOT)
    role_id = str(int(guild.id) + 50)
    guild.roles[role_id] = Role(
        role_id, guild.id, BOT_NAME, BOT_PERMISSIONS, founder.position, managed=True, bot_id=bot_id
    )
    founder.position += 1
    guild.members[bot_id] = Member(guild.id, bot_id, JOINED, [role_id])
