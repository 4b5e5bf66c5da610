"""Pictures, names and colours of people, and the list of a server's members."""

from sandbox.console.elements.markup import Markup, el, join
from sandbox.discord import LocalDiscord
from sandbox.discord.world import permissions
from sandbox.discord.world.entities import Guild, Member, Role, User


def picture(user: User, size: int = 40) -> Markup:
    """Return the avatar, or the default avatar of the user's id, as on Discord."""
    seed = user.avatar or f"default avatar {(int(user.id) >> 22) % 6}"
    return el("img", src=f"/console/pictures/{seed}.png", alt="", width=size, height=size, class_="picture")


def icon(guild: Guild) -> Markup:
    """Return the server's icon, or its initials."""
    if guild.icon:
        return el("img", src=f"/console/pictures/{guild.icon}.png", alt="", width=48, height=48)
    return el("span", "".join(word[0] for word in guild.name.split())[:3], aria_hidden="true")


def roles_of(guild: Guild, member: Member) -> list[Role]:
    """Return the roles of a member, the highest first."""
    return sorted((guild.roles[id_] for id_ in member.roles if id_ in guild.roles), key=permissions.rank, reverse=True)


def name_of(guild: Guild, user: User) -> str:
    """Return what Discord calls a user in a server: the nickname there, or the global name, or the username."""
    member = guild.members.get(user.id)
    return (member and member.nick) or user.global_name or user.username


def colour_of(guild: Guild, user_id: str) -> str | None:
    """Return the style of the highest role with a colour, which colours a name; None for the plain colour."""
    member = guild.members.get(user_id)
    return next(filter(None, map(colour, roles_of(guild, member))), None) if member else None


def colour(role: Role) -> str | None:
    """Return the role's colour as a style; None for the plain colour."""
    return f"--role:#{role.color & 0xFFFFFF:06x}" if role.color else None


def chip(role: Role, *more: Markup) -> Markup:
    """Return a role as a small label with its colour."""
    dot = el("span", class_="dot", style=colour(role), aria_hidden="true")
    return el("span", dot, role.name, more, class_="chip")


def people_of(discord: LocalDiscord) -> list[User]:
    """Return the people whom somebody can be: neither bots nor the crowds that only fill a guild."""
    return [user for user in discord.world.users.values() if not user.bot and not user.crowd]


def known_members(discord: LocalDiscord, guild: Guild) -> list[Member]:
    """Return the members without the crowd, which may be twenty thousand."""
    users = discord.world.users
    return [member for member in guild.members.values() if not users[member.user_id].crowd]


def crowd(discord: LocalDiscord, guild: Guild) -> Markup | None:
    """Return an entry of a list that says how many members only fill the guild, if any do."""
    count = len(guild.members) - len(known_members(discord, guild))
    return el("li", f"and {count:,} who only fill the server", class_="dim", data_key="crowd") if count else None


def members(discord: LocalDiscord, guild: Guild) -> Markup:
    """Return the members with their current roles, those with the highest role first; a crowd is only counted."""
    named = sorted(known_members(discord, guild), key=lambda one: discord.world.users[one.user_id].username)
    ranked = sorted(named, key=lambda one: permissions.rank(permissions.top_role(guild, one)), reverse=True)
    return join((_member(discord, guild, member) for member in ranked), crowd(discord, guild))


def _member(discord: LocalDiscord, guild: Guild, member: Member) -> Markup:
    user = discord.world.users[member.user_id]
    roles = roles_of(guild, member)
    return el(
        "li",
        picture(user, 32),
        el(
            "div",
            el(
                "p",
                el("span", name_of(guild, user), class_="name", style=colour_of(guild, user.id)),
                el("span", "APP", class_="app") if user.bot else None,
                el("span", "owner", class_="tag") if user.id == guild.owner_id else None,
                el("span", "screening", class_="tag") if member.pending else None,
            ),
            el("p", (chip(role) for role in roles), class_="chips") if roles else None,
        ),
        data_key=user.id,
        data_member=user.username,
    )
