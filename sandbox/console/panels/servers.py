"""The tool for servers: the bot in or out, roles and their order, members and their roles, the audit log."""

from sandbox.console.elements.forms import card, choice, do, field, hidden
from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.people import chip, crowd, known_members, people_of, picture, roles_of
from sandbox.console.elements.place import Place
from sandbox.discord import LocalDiscord
from sandbox.discord.world import permissions
from sandbox.discord.world.entities import Guild, Member, Role, User
from sandbox.discord.world.seed import BOT_PERMISSIONS

ENTRIES = 15
POWERS = {
    "0": "nothing",
    str(permissions.ADMINISTRATOR): "Administrator",
    str(permissions.MANAGE_GUILD): "Manage Server",
    str(permissions.MANAGE_ROLES): "Manage Roles",
    str(permissions.KICK_MEMBERS): "Kick Members",
    str(BOT_PERMISSIONS): "all that the bot asks for",
    str(BOT_PERMISSIONS & ~permissions.MANAGE_ROLES): "the same without Manage Roles",
}


def chosen(discord: LocalDiscord, place: Place) -> Guild:
    """Return the server that the tool shows."""
    guilds = discord.world.guilds
    return guilds.get(place.at or "") or place.guild or next(iter(guilds.values()))


def panel(discord: LocalDiscord, place: Place) -> Markup:
    """Return the tool: which server, its state, and the possible actions."""
    guild = chosen(discord, place)
    links = [
        el("li", el("a", one.name, href=place.url(at=one.id), aria_current="true" if one is guild else None))
        for one in discord.world.guilds.values()
    ]
    return join(
        el("ul", links, class_="tabs"),
        el("div", now(discord, place), id="panel-now", data_part=True, class_="wide pair"),
        _forms(discord, place, guild),
    )


def _forms(discord: LocalDiscord, place: Place, guild: Guild) -> Markup:
    people = [user.username for user in people_of(discord)]
    here = {one.id: one.username for one in people_of(discord) if one.id in guild.members}
    commands = sorted({one.definition["name"] for one in discord.world.commands.values()})
    grantable = {role.id: role.name for role in _from_the_top(guild) if not role.managed and role.id != guild.id}
    every = {role.id: role.name for role in _from_the_top(guild) if role.id != guild.id}
    where = hidden(guild=guild.id)
    screened = {"true": "waits for membership screening", "false": "has passed it"}

    def one(title: str, path: str, action: str, button: str, *fields: Markup) -> Markup:
        return card(place, title, path, where, hidden(action=action), *fields, button=button)

    return join(
        one("Give a role", "members", "add_role", "Give", choice("Member", "user", here),
            choice("Role", "role", grantable)),
        one("Somebody comes", "members", "join", "Join", choice("Person", "user", people)),
        one("Membership screening", "members", "set_pending", "Set", choice("Member", "user", here),
            choice("State", "pending", screened)),
        one("A new role", "guilds", "add_role", "Add role", field("Name", "name", required=True),
            choice("May do", "permissions", POWERS)),
        one("Who is offered a command", "guilds", "offer_command", "Set",
            choice("Command", "name", commands), choice("To", "to", {**every, **here}),
            choice("Offered", "allowed", {"true": "yes", "false": "no"})),
        one("Another name or owner", "guilds", "edit_guild", "Change server",
            field("Name", "name", placeholder=guild.name), choice("Owner", "owner", {"": "as it is", **here})),
        one("Another username", "members", "rename", "Rename", choice("Member", "user", here),
            field("Username", "name", required=True)),
        card(place, "Somebody new", "people", field("Username", "username", required=True), button="Make"),
        card(place, "A new server", "guilds", hidden(action="create"), field("Name", "guild", required=True),
             choice("Owner", "owner", people), button="Make a server"),
        one("What a role may do", "guilds", "edit_role", "Change", choice("Role", "role", every),
            choice("May do", "permissions", POWERS)),
    )  # fmt: skip


def now(discord: LocalDiscord, place: Place) -> Markup:
    """Return the bot, roles, members and log as they are at this moment."""
    guild = chosen(discord, place)
    added = discord.bot_id in guild.members
    action, label = ("kick_bot", "Kick the bot") if added else ("add_bot", "Add the bot")
    state = "The bot is in this server." if added else "The bot is not in this server."
    bot = el("p", state, class_="grow"), do(place, "guilds", hidden(guild=guild.id, action=action), _button(label))
    order = _from_the_top(guild)
    roles = [_role(place, guild, role) for role in order]
    known = known_members(discord, guild)
    members = [_member(place, guild, member, discord.world.users[member.user_id]) for member in known]
    return join(
        el(
            "section", el("h3", "Roles, from the top"), el("div", *bot, class_="row"), el("ul", roles, class_="rows"),
            class_="card",
        ),
        el("section", el("h3", "Members"), el("ul", members, crowd(discord, guild), class_="rows"), class_="card"),
        el("section", el("h3", "Audit log"), _log(discord, guild), class_="card wide"),
    )  # fmt: skip


def _from_the_top(guild: Guild) -> list[Role]:
    return list(reversed(permissions.ascending(guild)))


def _button(label: str, told: str | None = None) -> Markup:
    return el("button", label, class_="secondary small", aria_label=told)


def _role(place: Place, guild: Guild, role: Role) -> Markup:
    where = {"guild": guild.id, "role": role.id}
    if role.id == guild.id:
        return el("li", el("span", chip(role), class_="grow"))
    tools = [
        do(place, "guilds", hidden(**where, action="move_role", position=str(position)), _button(label, told))
        for label, told, position in (
            ("↑", f"Move {role.name} up", role.position + 1),
            ("↓", f"Move {role.name} down", role.position - 1),
        )
        if position >= 1
    ]
    if not role.managed:
        gone = _button("Delete", f"Delete {role.name}")
        tools.append(do(place, "guilds", hidden(**where, action="delete_role"), gone))
    power = el("span", _power(role), class_="dim")
    return el("li", el("span", chip(role), power, class_="grow"), tools)


def _power(role: Role) -> str:
    if role.permissions & permissions.ADMINISTRATOR:
        return " Administrator"
    return f" {POWERS.get(str(role.permissions), 'permissions ' + str(role.permissions))}" if role.permissions else ""


def _member(place: Place, guild: Guild, member: Member, user: User) -> Markup:
    where = {"guild": guild.id, "user": user.id}
    roles = [
        do(
            place,
            "members",
            hidden(**where, action="remove_role", role=role.id),
            chip(role, el("button", "×", class_="cross", aria_label=f"Take {role.name} from {user.username}")),
        )
        if not role.managed
        else chip(role)
        for role in roles_of(guild, member)
    ]
    leave = do(place, "members", hidden(**where, action="leave"), _button("Leaves", f"{user.username} leaves"))
    waiting = el("span", "screening", class_="tag") if member.pending else None
    return el(
        "li",
        picture(user, 24),
        el("span", user.username, waiting),
        el("span", roles, class_="grow chips"),
        None if user.id == guild.owner_id or user.bot else leave,
    )


def _log(discord: LocalDiscord, guild: Guild) -> Markup:
    entries = list(discord.world.audit.get(guild.id, {}).values())[-ENTRIES:]
    if not entries:
        return el("p", "Nothing has happened here yet.", class_="dim")

    def name(id_: str) -> str:
        known = discord.world.users.get(id_)
        named = guild.roles.get(id_) or guild.channels.get(id_)
        return known.username if known else named.name if named and id_ != guild.id else ""

    rows = [
        el("tr", (el("td", text) for text in (name(one.actor_id), one.action, name(one.target), one.reason or "")))
        for one in reversed(entries)
    ]
    head = el("tr", (el("th", text, scope="col") for text in ("Who", "Did", "To", "Reason")))
    return el("div", el("table", el("thead", head), el("tbody", rows)), class_="scroll", tabindex="0")
