"""The application's bot entering and leaving a guild."""

from sandbox.discord.actions import roles
from sandbox.discord.world import audit, intents, shapes
from sandbox.discord.world.audit import By
from sandbox.discord.world.entities import Guild, Member, Role
from sandbox.discord.world.permissions import ascending
from sandbox.discord.world.protocols import Discord
from sandbox.discord.world.seed import ABOVE_BOT, BELOW_BOT
from sandbox.discord.world.snowflakes import now_iso

LARGE = 250
"""The number of members from which a guild counts as large by default."""


def add(
    discord: Discord, guild: Guild, permissions: int, by: By, role_id: str | None = None, position: int | None = None
) -> None:
    """Add the bot with its managed role at this position, by default above Admin and below Founder.

    If the bot is in the guild already, only its role's permissions change. Discord itself puts the role at position 1,
    and makes none for a bot without permissions.
    """
    bot = discord.world.users[discord.bot_id]
    if discord.bot_id in guild.members:
        own = next((role for role in guild.roles.values() if role.bot_id == discord.bot_id), None)
        if own is not None:
            roles.change(discord, own, roles.RoleEdit(permissions=permissions), by)
        return
    member = Member(guild.id, bot.id, now_iso())
    if permissions:
        place = _position(guild) if position is None else position
        role = Role(
            role_id or discord.world.ids.next(), guild.id, bot.username, permissions, place, managed=True, bot_id=bot.id
        )
        above = [other for other in guild.roles.values() if other.position >= role.position]
        for other in above:
            other.position += 1
        member.roles.append(role.id)
        discord.world.save(*above, role)
    discord.world.save(member)
    audit.note(discord.world, guild.id, by, "added the bot", bot.id)
    discord.gateway.dispatch(guild.id, "GUILD_CREATE", full_guild(discord, guild), intents.GUILDS)
    event = {**shapes.member(member, bot), "guild_id": guild.id}
    discord.gateway.dispatch(guild.id, "GUILD_MEMBER_ADD", event, intents.GUILD_MEMBERS)


def remove(discord: Discord, guild: Guild, by: By) -> None:
    """Remove the bot with its managed role; the gateway sends GUILD_DELETE without `unavailable`."""
    member = guild.members.get(discord.bot_id)
    if member is None:
        return
    discord.gateway.end_outage(guild.id, tell=False)
    discord.gateway.dispatch(guild.id, "GUILD_DELETE", {"id": guild.id}, intents.GUILDS)
    discord.world.remove(member)
    for role in [role for role in guild.roles.values() if role.bot_id == discord.bot_id]:
        roles.delete(discord, guild, role, by)
    audit.note(discord.world, guild.id, by, "removed the bot", discord.bot_id)


def full_guild(discord: Discord, guild: Guild) -> shapes.Json:
    """Return the data of GUILD_CREATE.

    Without the presences intent, `members` has only the bot and the members in a call. For a guild that READY listed,
    Discord adds `unavailable: false`; its absence shows clients that the bot was just added.
    """
    own = guild.members[discord.bot_id]
    calls = [state for state in guild.live.get("voice_states", []) if state["user_id"] in guild.members]
    shown = [own, *(guild.members[user_id] for user_id in dict.fromkeys(state["user_id"] for state in calls))]
    return {
        **shapes.guild(guild),
        "joined_at": own.joined_at,
        "large": shapes.member_count(guild) >= LARGE,
        "members": [shapes.member(member, discord.world.users[member.user_id]) for member in shown],
        "channels": [shapes.channel(channel) for channel in guild.channels.values()],
        "threads": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
        "hub_type": None,
        **guild.live,
        "voice_states": calls,
        "member_count": shapes.member_count(guild),
    }


def _position(guild: Guild) -> int:
    by_name = {role.name: role.position for role in guild.roles.values()}
    if BELOW_BOT in by_name:
        return by_name[BELOW_BOT] + 1
    return by_name.get(ABOVE_BOT, ascending(guild)[-1].position + 1)
