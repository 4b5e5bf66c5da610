"""Restoring the world of the start step by step: the bot receives every step as an ordinary event."""

from sandbox.discord.actions import bots, channels, members, messages, roles
from sandbox.discord.actions.roles import RoleEdit
from sandbox.discord.world import intents, seed, shapes
from sandbox.discord.world.audit import By
from sandbox.discord.world.entities import Guild
from sandbox.discord.world.protocols import Discord


def to_start(discord: Discord) -> None:
    """Make the world what `seed` describes. Commands stay, since they belong to the application."""
    world = discord.world
    start = {guild.id: guild for guild in seed.guilds(discord.bot_id)}
    _users(discord)
    for guild in list(world.guilds.values()):
        if guild.id not in start:
            bots.remove(discord, guild, By(guild.owner_id))
            world.remove(guild)
    for guild in start.values():
        if guild.id not in world.guilds:
            plant(discord, guild)
        else:
            _guild(discord, world.guilds[guild.id], guild)
    world.remove(*(one for log in world.audit.values() for one in list(log.values())), *list(world.grants.values()))
    world.compact()


def _crowds(discord: Discord) -> None:
    """Remove the members who only fill guilds, without an event for each."""
    crowd = {user.id for user in discord.world.users.values() if user.crowd}
    if crowd:
        gone = [
            one for guild in discord.world.guilds.values() for one in guild.members.values() if one.user_id in crowd
        ]
        discord.world.remove(*gone, *(discord.world.users[one] for one in crowd))


def _users(discord: Discord) -> None:
    start = {user.id: user for user in seed.users(discord.bot_id)}
    for user in start.values():
        if discord.world.users.get(user.id) != user:
            members.user_changed(discord, user)
    _crowds(discord)
    for user in [user for user in discord.world.users.values() if user.id not in start]:
        for guild in discord.world.guilds.values():
            if member := guild.members.get(user.id):
                members.leave(discord, guild, member)
        discord.world.remove(user)


def plant(discord: Discord, guild: Guild) -> None:
    """Save a complete new guild that has no bot, or whose bot has not connected yet."""
    parts = [*guild.roles.values(), *guild.members.values(), *guild.channels.values()]
    discord.world.save(guild, *parts)


def _guild(discord: Discord, guild: Guild, start: Guild) -> None:
    same = all(getattr(guild, name) == getattr(start, name) for name in ("name", "owner_id", "icon", "extras", "live"))
    guild.name, guild.owner_id, guild.icon, guild.offers = start.name, start.owner_id, start.icon, start.offers
    guild.extras, guild.live = start.extras, start.live
    discord.world.save(guild)
    if not same:
        discord.gateway.dispatch(guild.id, "GUILD_UPDATE", shapes.guild(guild), intents.GUILDS)
    by = By(start.owner_id)
    _bot(discord, guild, start, by)
    _roles(discord, guild, start, by)
    for member in [m for m in guild.members.values() if m.user_id not in start.members]:
        members.leave(discord, guild, member)
    for wanted in start.members.values():
        user = discord.world.users[wanted.user_id]
        member = guild.members.get(user.id) or members.join(discord, guild, user)
        if member != wanted:
            for name, value in vars(wanted).items():
                setattr(member, name, value)
            members.changed(discord, member)
    _channels(discord, guild, start)
    # Restore the order of members too: one who left and came back would otherwise be the last.
    guild.members = {user_id: guild.members[user_id] for user_id in start.members}


def _bot(discord: Discord, guild: Guild, start: Guild, by: By) -> None:
    own = next((role for role in guild.roles.values() if role.bot_id), None)
    wanted = next((role for role in start.roles.values() if role.bot_id), None)
    if discord.bot_id in guild.members and (own is None or wanted is None or own.id != wanted.id):
        bots.remove(discord, guild, by)
    if wanted and discord.bot_id not in guild.members:
        if own := guild.roles.get(wanted.id):
            roles.delete(discord, guild, own, by)
        bots.add(discord, guild, wanted.permissions, by, wanted.id)


def _roles(discord: Discord, guild: Guild, start: Guild, by: By) -> None:
    for role in [role for role in guild.roles.values() if role.id not in start.roles]:
        roles.delete(discord, guild, role, by)
    for wanted in start.roles.values():
        edit = RoleEdit(wanted.name, wanted.permissions, wanted.color, wanted.hoist, wanted.mentionable, wanted.tags)
        role = guild.roles.get(wanted.id)
        if role is None:
            roles.create(discord, guild, edit, by, wanted.id)
        elif any(getattr(role, name) != value for name, value in vars(edit).items()):
            roles.change(discord, role, edit, by)
    positions = {role.id: role.position for role in start.roles.values() if role.id != guild.id}
    if any(guild.roles[role_id].position != position for role_id, position in positions.items()):
        roles.move(discord, guild, positions, by)


def _channels(discord: Discord, guild: Guild, start: Guild) -> None:
    for channel in [channel for channel in guild.channels.values() if channel.id not in start.channels]:
        channels.closed(discord, channel)
    for wanted in start.channels.values():
        channel = guild.channels.get(wanted.id)
        if channel is None:
            channels.opened(discord, wanted)
            continue
        for message in list(discord.world.messages[channel.id].values()):
            messages.deleted(discord, message)
        if channel != wanted:
            for name, value in vars(wanted).items():
                setattr(channel, name, value)
            channels.changed(discord, channel)
