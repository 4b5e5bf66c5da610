"""Members from whom, and roles for which, nothing is taken until an admin says otherwise."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlmodel import col, select

from gateways import Gateways
from models import Member, Rule
from models.database import AsyncSession
from services import due, events, rights
from services.actors import Actor
from services.errors import MemberNotFound, RuleNotFound


@dataclass(frozen=True, slots=True)
class ProtectedMember:
    """A member who keeps every role that we gave them; the name is the id of somebody who is gone."""

    discord_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ProtectedRole:
    """A role that nobody loses by us."""

    role_id: str
    role_name: str


@dataclass(frozen=True, slots=True)
class ProtectionView:
    """Everything that is protected in a server, by names."""

    members: tuple[ProtectedMember, ...]
    roles: tuple[ProtectedRole, ...]


async def view(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> ProtectionView:
    """What is protected, for those who run the server. Raises ServerNotFound, ProviderUnavailable."""
    server = (await rights.by_id(db, outside, actor, server_id)).server
    found = await db.exec(
        select(Member.discord_id, Member.name).where(
            Member.server_id == server_id, col(Member.discord_id).in_(server.protected_members)
        )
    )
    names = dict(found.all())
    rules = await db.exec(
        select(Rule.role_id, Rule.role_name).where(Rule.server_id == server_id).order_by(col(Rule.id))
    )
    titles = dict(rules.all())
    members = [ProtectedMember(who, names.get(who, who)) for who in server.protected_members]
    roles = [ProtectedRole(role, titles.get(role, role)) for role in server.protected_roles]
    return ProtectionView(
        tuple(sorted(members, key=lambda one: one.name.casefold())),
        tuple(sorted(roles, key=lambda one: one.role_name.casefold())),
    )


async def of_member(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, discord_id: str, protected: bool
) -> None:
    """Protect a member, or no longer; who has left can only be let go of.

    Raises ServerNotFound, MemberNotFound, ProviderUnavailable.
    """
    await rights.by_id(db, outside, actor, server_id)
    member = await db.get(Member, (server_id, discord_id))
    if protected and (member is None or member.left_at is not None):
        raise MemberNotFound
    if await _change(db, _MEMBER, server_id, discord_id, protected):
        await events.record(
            db,
            events.line(
                "member.protected", server_id=server_id, actor=actor.discord_id, subject=discord_id,
                data={"protected": protected},
            ),
        )  # fmt: skip
        await due.mark_members(db, server_id, [discord_id], due.CHANGED)


async def of_role(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, role_id: str, protected: bool
) -> None:
    """Protect a role that a rule of the server is about, or protect it no longer.

    Raises ServerNotFound, RuleNotFound, ProviderUnavailable.
    """
    await rights.by_id(db, outside, actor, server_id)
    named = await db.exec(select(Rule.role_name).where(Rule.server_id == server_id, Rule.role_id == role_id))
    name = named.first()
    if protected and name is None:
        raise RuleNotFound
    if await _change(db, _ROLE, server_id, role_id, protected):
        await events.record(
            db,
            events.line(
                "role.protected", server_id=server_id, actor=actor.discord_id, role_id=role_id,
                data={"protected": protected, "roleName": name or role_id},
            ),
        )  # fmt: skip
        await due.mark_server(db, server_id, due.CHANGED)


def _statement(column: str) -> str:
    return f"""
        UPDATE server SET {column} = CASE WHEN :protected THEN array_append({column}, CAST(:one AS text))
                                          ELSE array_remove({column}, CAST(:one AS text)) END
        WHERE id = :server AND (CAST(:one AS text) = ANY({column})) <> :protected RETURNING id
    """


_MEMBER, _ROLE = _statement("protected_members"), _statement("protected_roles")


async def _change(db: AsyncSession, statement: str, server_id: int, one: str, protected: bool) -> bool:
    """Write it down; False when it was so already."""
    result = await db.execute(text(statement), {"server": server_id, "one": one, "protected": protected})
    return result.first() is not None
