"""Protection: members who lose no role, and roles that nobody loses, until an admin ends the protection."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import func
from sqlmodel import col, select

from gateways import Gateways
from locales import _
from models import Event, Member, Rule
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.core.audit import EventView
from services.core.discord_text import DEFAULT_COLOR
from services.core.errors import RoleNotFound
from services.core.json_view import Internal, json_view
from services.guilds import members as membership
from services.guilds import permissions
from services.guilds.role_safety import UNKNOWN_ROLE
from services.rules import pausing
from services.servers import activity

MEMBER: Final = "member.protected"
ROLE: Final = "role.protected"
"""The kinds of the lines in the log."""


@json_view
class ProtectedMember:
    """A member who keeps every role that we gave them; the name of an unknown member is the id."""

    discord_id: str
    name: str


@json_view
class ProtectedRole:
    """A role that we take from nobody; `by` and `since` say who protected it and when, while the log has the line."""

    role_id: str
    role_name: str
    role_color: Internal[str]
    by: str | None
    since: datetime | None


@json_view
class ProtectionView:
    """Everything that is protected in a server, by name."""

    members: tuple[ProtectedMember, ...]
    roles: tuple[ProtectedRole, ...]
    offered: Internal[tuple[ProtectedRole, ...]]
    """The roles of rules that are not protected, without those that were deleted in Discord."""


async def view(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> ProtectionView:
    """Return what is protected, for somebody who runs the server. Raises ServerNotFound, ProviderUnavailable."""
    server, guild = await permissions.read_with_guild(db, outside, actor, server_id)
    found = await db.exec(
        select(Member.discord_id, Member.name).where(
            Member.server_id == server_id, col(Member.discord_id).in_(server.protected_members)
        )
    )
    names = dict(found.all())
    members = [ProtectedMember(who, names.get(who, who)) for who in server.protected_members]
    rules = (await db.exec(select(Rule).where(Rule.server_id == server_id).order_by(col(Rule.id)))).all()
    gone = set[str]() if guild is None else {rule.role_id for rule in rules}.difference(one.id for one in guild.roles)
    offered = {
        rule.role_id: ProtectedRole(rule.role_id, rule.role_name, rule.role_color, None, None)
        for rule in rules
        if rule.deleted_at is None and rule.role_id not in {*server.protected_roles, *gone}
    }
    return ProtectionView(
        tuple(sorted(members, key=lambda one: one.name.casefold())),
        _in_order(await _roles(db, server_id, server.protected_roles, {rule.role_id: rule for rule in rules})),
        _in_order(list(offered.values())),
    )


async def _roles(
    db: AsyncSession, server_id: int, role_ids: Sequence[str], rules: dict[str, Rule]
) -> list[ProtectedRole]:
    newest = (
        select(func.max(Event.id))
        .where(Event.server_id == server_id, Event.kind == ROLE, col(Event.role_id).in_(role_ids))
        .group_by(col(Event.role_id))
    )
    said = await db.exec(select(Event).where(col(Event.id).in_(newest)))
    lines = {row.role_id or "": EventView.of(row) for row in said.all()}
    known = await activity.names_of(db, server_id, list(lines.values()))
    names = await activity.role_names(db, server_id, role_ids)
    return [
        ProtectedRole(
            role_id,
            names.get(role_id) or _(UNKNOWN_ROLE),
            rules[role_id].role_color if role_id in rules else DEFAULT_COLOR,
            by=known.person(lines[role_id].actor) if role_id in lines else None,
            since=lines[role_id].at if role_id in lines else None,
        )
        for role_id in role_ids
    ]


def _in_order(roles: Sequence[ProtectedRole]) -> tuple[ProtectedRole, ...]:
    return tuple(sorted(roles, key=lambda one: one.role_name.casefold()))


async def of_member(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, discord_id: str, protected: bool
) -> None:
    """Protect a member, or end the protection; for a member who left it can only be ended. Grace times begin then.

    Raises ServerNotFound, MemberNotFound, ProviderUnavailable.
    """
    await permissions.require_admin(db, outside, actor, server_id)
    if protected:
        await membership.current_member(db, server_id, discord_id)
    line = audit.line(
        MEMBER, server_id=server_id, actor=actor.discord_id, subject=discord_id, data={"protected": protected}
    )
    if await _change(db, "protected_members", discord_id, line):
        await queue.mark_members(db, server_id, [discord_id], queue.CHANGED)
        if protected:
            await pausing.call_off_removals(db, server_id, of=discord_id)
        else:
            await pausing.begin_grace_of_kept(db, server_id, of=discord_id)


async def of_role(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, role_id: str, protected: bool
) -> None:
    """Protect a role of the server's rules, or end the protection. Grace times begin then.

    Raises ServerNotFound, RoleNotFound, ProviderUnavailable.
    """
    await permissions.require_admin(db, outside, actor, server_id)
    named = await db.exec(select(Rule.role_name).where(Rule.server_id == server_id, Rule.role_id == role_id))
    name = named.first()
    if protected and name is None:
        raise RoleNotFound
    data = {"protected": protected, "roleName": name or role_id}
    line = audit.line(ROLE, server_id=server_id, actor=actor.discord_id, role_id=role_id, data=data)
    if await _change(db, "protected_roles", role_id, line):
        await queue.mark_server(db, server_id, queue.CHANGED)
        if protected:
            await pausing.call_off_removals(db, server_id, [role_id])
        else:
            await pausing.begin_grace_of_kept(db, server_id, [role_id])


async def _change(db: AsyncSession, column: str, one: str, line: dict[str, Any]) -> bool:
    """Make the change and record the line in the log; return False if nothing changed."""
    statement = f"""
        UPDATE server SET {column} = CASE WHEN :protected THEN array_append({column}, CAST(:one AS text))
                                          ELSE array_remove({column}, CAST(:one AS text)) END
        WHERE id = :server AND (CAST(:one AS text) = ANY({column})) <> :protected RETURNING id
    """
    values = {"server": line["server_id"], "one": one, "protected": line["data"]["protected"]}
    if (await db.execute(statement, values)).first() is None:
        return False
    await audit.record(db, line)
    return True
