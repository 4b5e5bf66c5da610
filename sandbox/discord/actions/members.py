"""What can happen to a member: joining, leaving, roles, names. No permissions are checked here."""

from sandbox.discord.world import audit, intents, shapes
from sandbox.discord.world.audit import By
from sandbox.discord.world.entities import Guild, Member, Role, User
from sandbox.discord.world.protocols import Discord
from sandbox.discord.world.snowflakes import now_iso


def join(discord: Discord, guild: Guild, user: User, *, pending: bool = False) -> Member:
    """Make the user a member, who may still have to pass the server's membership screening."""
    member = Member(guild.id, user.id, now_iso(), pending=pending)
    discord.world.save(member)
    event = {**shapes.member(member, user), "guild_id": guild.id}
    discord.gateway.dispatch(guild.id, "GUILD_MEMBER_ADD", event, intents.GUILD_MEMBERS)
    return member


def populate(discord: Discord, guild: Guild, count: int) -> tuple[str, str]:
    """Add `count` members who were always there, so without an event; return the first and the last id of the row."""
    first = int(discord.world.ids.next_of(count))
    ids = [str(first + number) for number in range(count)]
    joined = now_iso()
    users = [User(one, f"crowd{one}", None, None, crowd=True) for one in ids]
    discord.world.save(*users, *(Member(guild.id, one, joined) for one in ids))
    return ids[0], ids[-1]


def leave(discord: Discord, guild: Guild, member: Member) -> None:
    """Remove the member together with their roles."""
    user = discord.world.users[member.user_id]
    discord.world.remove(member)
    event = {"guild_id": guild.id, "user": shapes.user(user)}
    discord.gateway.dispatch(guild.id, "GUILD_MEMBER_REMOVE", event, intents.GUILD_MEMBERS)


def give_role(discord: Discord, member: Member, role: Role, by: By) -> None:
    """Give a role; giving one that is held changes nothing and sends no event."""
    if role.id in member.roles:
        return
    member.roles.append(role.id)
    changed(discord, member)
    change = {"key": "$add", "new_value": [{"id": role.id, "name": role.name}]}
    audit.note(discord.world, role.guild_id, by, f"gave the role {role.name}", member.user_id, [change])


def take_role(discord: Discord, member: Member, role: Role, by: By) -> None:
    """Take a role; taking one that is not held changes nothing and sends no event."""
    if role.id not in member.roles:
        return
    member.roles.remove(role.id)
    changed(discord, member)
    change = {"key": "$remove", "new_value": [{"id": role.id, "name": role.name}]}
    audit.note(discord.world, role.guild_id, by, f"took the role {role.name}", member.user_id, [change])


def changed(discord: Discord, member: Member) -> None:
    """Save a member and tell the bot. The bot's own changes reach it without the members intent."""
    discord.world.save(member)
    event = {**shapes.member(member, discord.world.users[member.user_id]), "guild_id": member.guild_id}
    own = member.user_id == discord.bot_id
    discord.gateway.dispatch(member.guild_id, "GUILD_MEMBER_UPDATE", event, 0 if own else intents.GUILD_MEMBERS)


def user_changed(discord: Discord, user: User) -> None:
    """Save an account and tell the bot in every guild that they share."""
    discord.world.save(user)
    for guild in discord.world.guilds.values():
        if member := guild.members.get(user.id):
            changed(discord, member)
