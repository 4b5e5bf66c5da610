"""Finding what a control call names, by id or by name."""

from sandbox.base.refusal import Refusal
from sandbox.discord.world.entities import Guild, Member, Role, User
from sandbox.discord.world.protocols import Discord


def find_guild(discord: Discord, wanted: str) -> Guild:
    """Return the guild with this id or name. Raises Refusal(404)."""
    for guild in discord.world.guilds.values():
        if wanted in (guild.id, guild.name):
            return guild
    raise Refusal(404, f"There is no guild {wanted!r}.")


def find_user(discord: Discord, wanted: str) -> User:
    """Return the user with this id or name; the bot counts. Raises Refusal(404)."""
    user = discord.user_called(wanted)
    if user is None:
        raise Refusal(404, f"There is no person {wanted!r}.")
    return user


def find_member(guild: Guild, user: User) -> Member:
    """Return the user's member in this guild. Raises Refusal(404)."""
    if user.id not in guild.members:
        raise Refusal(404, f"{user.username} is not in {guild.name}.")
    return guild.members[user.id]


def find_role(guild: Guild, wanted: str) -> Role:
    """Return the role with this id or name. Raises Refusal(404)."""
    for role in guild.roles.values():
        if wanted in (role.id, role.name):
            return role
    raise Refusal(404, f"{guild.name} has no role {wanted!r}.")
