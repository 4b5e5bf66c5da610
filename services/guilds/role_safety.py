"""Which roles a rule may grant: pure functions over a guild's roles, with the reason for a refusal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from locales import N_, _, listed
from locales.stored_texts import said

ADMINISTRATOR = 1 << 3
MANAGE_ROLES = 1 << 28
MANAGE_SERVER = 1 << 5
UNKNOWN_ROLE = N_("Unknown Role")
"""The name shown for a role whose own name is no longer known."""

# Bits and names are from Discord's permission table (docs/security.md says why each is dangerous).
DANGEROUS = {
    N_("Administrator"): ADMINISTRATOR,
    N_("Kick Members"): 1 << 1,
    N_("Ban Members"): 1 << 2,
    N_("Manage Channels"): 1 << 4,
    N_("Manage Server"): MANAGE_SERVER,
    N_("View Audit Log"): 1 << 7,
    N_("Manage Messages"): 1 << 13,
    N_("Mention Everyone"): 1 << 17,
    N_("Manage Nicknames"): 1 << 27,
    N_("Manage Roles"): MANAGE_ROLES,
    N_("Manage Webhooks"): 1 << 29,
    N_("Manage Expressions"): 1 << 30,
    N_("Manage Events"): 1 << 33,
    N_("Manage Threads"): 1 << 34,
    N_("Moderate Members"): 1 << 40,
}


class RoleLike(Protocol):
    """The fields of a role that these functions need."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def position(self) -> int: ...
    @property
    def managed(self) -> bool: ...
    @property
    def permissions(self) -> int: ...
    @property
    def giver(self) -> str: ...


_Role = TypeVar("_Role", bound=RoleLike)

_GIVERS = {
    "linked": N_("{role} is a Linked Role: Discord gives it to members by the accounts they link, and to nobody else."),
    "booster": N_(
        "{role} is the Server Booster role: Discord gives it to members who boost this server, and to nobody else."
    ),
    "shop": N_("{role} is a role from the server's shop: Discord gives it to members who buy it, and to nobody else."),
    "bot": N_("{role} is the own role of a bot: Discord gives it to that bot, and to nobody else."),
    "integration": N_(
        "{role} belongs to an integration such as Twitch or YouTube, which gives it to its subscribers itself."
    ),
    "": N_("{role} is managed by Discord or an integration and cannot be given by a rule."),
}
"""What gives a role instead of people → the sentence about such a role."""
_CARRIES = N_("{role} carries the permission {permission}; a rule never grants a role with such power.")
_LACKS_MANAGE_ROLES = N_("The bot lacks the permission Manage Roles in this server. Invite it again to give it that.")
_ABOVE_THE_BOT = N_("{role} is above the bot's own role. Move the bot's role above it in Server Settings › Roles.")
_SHORT_GIVERS = {
    "linked": N_("a Linked Role"), "booster": N_("the Server Booster role"), "shop": N_("a role of the server's shop"),
    "bot": N_("a bot's own role"), "integration": N_("a role of an integration"), "": N_("managed by an integration"),
}  # fmt: skip
_OTHER_ROLE = N_("Choose another role for the rule.")
_EVERYONE = N_("@everyone belongs to every member already, so a rule cannot grant it.")
_BARE: Mapping[str | None, str] = {
    "above_bot": N_("{role} is above the bot's own role."),
    "manage_roles": N_("The bot lacks the permission Manage Roles in this server."),
    "role_gone": N_("{role} was deleted in Discord."),
}
"""A cause → the sentence about it without the remedy; the other texts have none."""
_ABOVE_THE_PERSON = N_("{role} is not below your own highest role, so you cannot hand it out.")
_TAKING_ABOVE_THE_PERSON = N_("{role} is not below your own highest role, so you cannot take it from members.")

Rank = tuple[int, int]
"""A role's rank; a higher role has more power. Of two roles at one position, the older (lower id) is higher."""

LOWEST: Rank = (-1, 0)


@dataclass(frozen=True, slots=True)
class RoleStanding:
    """A person's standing in a guild: their highest role and all their permissions."""

    top: Rank
    permissions: int
    owner: bool = False

    @property
    def is_admin(self) -> bool:
        """Whether they own the guild or have the Administrator permission."""
        return self.owner or bool(self.permissions & ADMINISTRATOR)

    @property
    def may_manage_server(self) -> bool:
        """Whether they may change the server's own settings."""
        return self.is_admin or bool(self.permissions & MANAGE_SERVER)

    @property
    def may_manage_roles(self) -> bool:
        """Whether Discord lets them give and take roles at all."""
        return self.is_admin or bool(self.permissions & MANAGE_ROLES)


def rank(role: RoleLike) -> Rank:
    """Return a role's rank."""
    return role.position, -int(role.id)


def standing(
    guild_id: str, owner_id: str, roles: Iterable[RoleLike], user_id: str, held: Iterable[str]
) -> RoleStanding:
    """Return the standing of a member with the `held` roles; @everyone (whose id is the guild's) always counts."""
    theirs = set(held) | {guild_id}
    mine = [role for role in roles if role.id in theirs]
    permissions = 0
    for role in mine:
        permissions |= role.permissions
    top = max((rank(role) for role in mine), default=LOWEST)
    return RoleStanding(top, permissions, owner=user_id == owner_id)


def dangers(permissions: int) -> list[str]:
    """Return the names of the permissions that no rule may hand out."""
    return [name for name, bit in DANGEROUS.items() if permissions & bit]


@dataclass(frozen=True, slots=True)
class NotGrantable:
    """Why a rule cannot grant a role: a `cause` for programs, a sentence, how to fix it, and the reason in brief.

    `kept` is the sentence to store.
    """

    cause: str
    text: str
    mend: str
    short: str
    kept: str


def translated(text: str, role: str) -> str:
    """Return the stored text of a `NotGrantable` in the reader's language; return any other text unchanged.

    The text was stored in English, with the role's name at that time.
    """
    for known in (*_GIVERS.values(), _ABOVE_THE_BOT):
        if text == known.format(role=role):
            return _(known).format(role=role)
    for permission in DANGEROUS:
        if text == _CARRIES.format(role=role, permission=permission):
            return _(_CARRIES).format(role=role, permission=_(permission))
    return said(text)


def bare(cause: str | None, text: str, role: str) -> str:
    """Return what is wrong with a role, for a place that says how to fix it beside it: many a text says both."""
    return _(_BARE[cause]).format(role=role) if cause in _BARE else text


def judge(role: RoleLike, guild_id: str, bot: RoleStanding, person: RoleStanding | None = None) -> NotGrantable | None:
    """Return why a rule cannot grant this role, or None if it can.

    `person` configures the rule. Without one, for an existing rule, only the role and the bot are judged.
    """

    def refused(cause: str, text: str, mend: str, short: str, permission: str = "") -> NotGrantable:
        told = _(text).format(role=role.name, permission=_(permission))
        return NotGrantable(cause, told, mend, short, text.format(role=role.name, permission=permission))

    if role.id == guild_id:
        return refused("everyone", _EVERYONE, _(_OTHER_ROLE), _("belongs to everybody"))
    if role.managed or role.giver:
        cause = "linked" if role.giver == "linked" else "managed"
        return refused(cause, _GIVERS[role.giver], _(_OTHER_ROLE), _(_SHORT_GIVERS[role.giver]))
    if found := dangers(role.permissions):
        mend = _("Take {permissions} from {role} in Server Settings › Roles, or choose another role.").format(
            permissions=listed(_(one) for one in found), role=role.name
        )
        return refused("dangerous", _CARRIES, mend, _("has {permission}").format(permission=_(found[0])), found[0])
    if not bot.may_manage_roles:
        mend = _("Give the bot's role Manage Roles in Server Settings › Roles, or invite the bot again.")
        return refused("manage_roles", _LACKS_MANAGE_ROLES, mend, _("the bot lacks Manage Roles"))
    if not bot.owner and rank(role) >= bot.top:
        mend = _("Drag the bot's role above {role} in Server Settings › Roles.").format(role=role.name)
        return refused("above_bot", _ABOVE_THE_BOT, mend, _("above the bot's role"))
    if person is not None and _is_above(role, person):
        mend = _("Choose a role below your own highest one.")
        return refused("above_person", _ABOVE_THE_PERSON, mend, _("not below your own highest role"))
    return None


def _is_above(role: RoleLike, person: RoleStanding) -> bool:
    return not person.owner and rank(role) >= person.top


def is_too_low(roles: Sequence[RoleLike], guild_id: str, bot: RoleStanding) -> bool:
    """Return whether no role can be granted, and some cannot only because they are above the bot's role."""
    refused = [judge(role, guild_id, bot) for role in roles]
    return all(refused) and any(one is not None and one.cause == "above_bot" for one in refused)


def refusal(role: RoleLike, guild_id: str, bot: RoleStanding, person: RoleStanding | None = None) -> str | None:
    """Return only the sentence of `judge`; None if the role can be granted."""
    found = judge(role, guild_id, bot, person)
    return found.text if found else None


def rank_refusal(roles: Sequence[RoleLike], role_id: str, person: RoleStanding) -> str | None:
    """Return why the person may not hand this role out; None if they may, or if the role does not exist."""
    return _rank_refusal(roles, role_id, person, _ABOVE_THE_PERSON)


def taking_refusal(roles: Sequence[RoleLike], role_id: str, person: RoleStanding) -> str | None:
    """Return why the person may not take this role from members; None if they may, or if the role does not exist."""
    return _rank_refusal(roles, role_id, person, _TAKING_ABOVE_THE_PERSON)


def _rank_refusal(roles: Sequence[RoleLike], role_id: str, person: RoleStanding, told: str) -> str | None:
    role = find(roles, role_id)
    return None if role is None or not _is_above(role, person) else _(told).format(role=role.name)


def find(roles: Sequence[_Role], role_id: str) -> _Role | None:
    """Return the role with this id, or None."""
    return next((role for role in roles if role.id == role_id), None)
