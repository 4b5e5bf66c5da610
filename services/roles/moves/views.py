"""A server's move as its admins see it: dates, roles with their coverage and rivals, and the days so far."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import col, select

from gateways import Gateways
from locales import _
from models import Rule, ServerMove
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.discord_text import DEFAULT_COLOR
from services.core.errors import MoveNotFound
from services.core.json_view import json_view
from services.guilds import permissions, verification_channel
from services.guilds.role_safety import UNKNOWN_ROLE
from services.guilds.verification_channel import ChannelOption
from services.roles.moves import coverage, lifecycle
from services.roles.moves.coverage import CoverageDay
from services.roles.moves.lifecycle import SeenMove

PLANNED, RUNNING, OVER, APPROVED = "planned", "running", "over", "approved"
RIVALS_SHOWN = timedelta(days=30)


@json_view
class MoveRival:
    """Another bot or person who moved the role; `name` is null where the server's audit log does not say it.

    A token without the scope for members reads no person's name.
    """

    name: str | None
    last_at: datetime


@json_view
class MovingRole:
    """A handed-over role: its holders by standing, and who else moves it.

    `right`: a rule says yes to their wallets. `wrong`: all rules say no. `unverified`: no wallet of theirs counts here.
    `unknown`: no active rule, or their wallets could not be read. `taken` counts removals since the approval.
    `decided` is whether an active rule gives the role: without one, every holder with a wallet is unknown.
    """

    role_id: str
    role_name: str
    role_color: str
    right: int
    wrong: int
    unverified: int
    unknown: int
    taken: int
    decided: bool
    rivals: tuple[MoveRival, ...]


@json_view
class MoveView:
    """A move: `planned`, `running`, `over` (it waits for an approval) or `approved`.

    Until the approval nobody loses a role of the move that others gave them, and nobody without a wallet loses one.
    `days` are the stored counts of all roles together. `messagesUpdated` is false if Discord did not let us change the
    panel or the announcement.
    """

    state: str
    begins_at: datetime
    until: datetime
    channel_id: str | None
    approved_at: datetime | None
    counted_at: datetime
    roles: tuple[MovingRole, ...]
    days: tuple[CoverageDay, ...]
    messages_updated: bool = True


@dataclass(frozen=True, slots=True)
class RoleChoice:
    """A role that rules give and that an admin can choose for a move."""

    role_id: str
    role_name: str
    role_color: str


@dataclass(frozen=True, slots=True)
class MoveScreen:
    """The content of the screen: the move, if there is one, and the roles and channels to choose from."""

    move: MoveView | None
    roles: tuple[RoleChoice, ...]
    channels: tuple[ChannelOption, ...]
    now: datetime


async def view(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, *, messages_updated: bool = True
) -> MoveView:
    """Return the server's move. Raises ServerNotFound unless the actor runs it, MoveNotFound, ProviderUnavailable."""
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    move = await lifecycle.newest(db, server_id)
    if move is None:
        raise MoveNotFound
    return await _view(db, move, messages_updated=messages_updated, named=actor.reads_members)


async def screen(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> MoveScreen:
    """Return the move with the choices for it. Raises ServerNotFound, Conflict, ProviderUnavailable."""
    channels = await verification_channel.view(db, outside, actor, server_id)
    move = await lifecycle.newest(db, server_id)
    found = None if move is None else await _view(db, move)
    # A deleted role can be taken out of the move that has it.
    there = channels.roles.union(() if move is None else move.roles)
    choices = tuple(one for one in await _choices(db, server_id) if one.role_id in there)
    return MoveScreen(found, choices, channels.options, await db.now())


def seen(move: MoveView | None) -> SeenMove:
    """Return what somebody has seen to whom this open move is shown, or None if there is none."""
    if move is None:
        return SeenMove()
    return SeenMove(tuple(one.role_id for one in move.roles), move.begins_at, move.until, move.channel_id)


async def _view(db: AsyncSession, move: ServerMove, *, messages_updated: bool = True, named: bool = True) -> MoveView:
    seen = await coverage.of_move(db, move)
    choices = {one.role_id: one for one in await _choices(db, move.server_id, deleted=True)}
    rivals = await _rivals(db, move, named)
    taken = await _taken(db, move)
    decided = await _decided(db, move.server_id)
    roles: list[MovingRole] = []
    for role_id in move.roles:
        one, choice = seen.of(role_id), choices.get(role_id, RoleChoice(role_id, _(UNKNOWN_ROLE), DEFAULT_COLOR))
        roles.append(
            MovingRole(
                role_id, choice.role_name, choice.role_color, one.right, one.wrong, one.unverified, one.unknown,
                taken.get(role_id, 0), role_id in decided, rivals.get(role_id, ()),
            )
        )  # fmt: skip
    return MoveView(
        _state(move, await db.now()), move.begins_at, move.until, move.channel_id, move.approved_at, seen.at,
        tuple(roles), await coverage.days(db, move), messages_updated,
    )  # fmt: skip


def _state(move: ServerMove, at: datetime) -> str:
    if move.state == "approved":
        return APPROVED
    if at < move.begins_at:
        return PLANNED
    return RUNNING if at < move.until else OVER


async def _choices(db: AsyncSession, server_id: int, *, deleted: bool = False) -> tuple[RoleChoice, ...]:
    """Return the roles of the server's rules by name; with `deleted`, of deleted rules too."""
    rules = await db.exec(select(Rule).where(Rule.server_id == server_id).order_by(col(Rule.id)))
    found = {
        rule.role_id: RoleChoice(rule.role_id, rule.role_name, rule.role_color)
        for rule in rules.all()
        if deleted or rule.deleted_at is None
    }
    return tuple(sorted(found.values(), key=lambda one: (one.role_name.casefold(), one.role_id)))


async def _decided(db: AsyncSession, server_id: int) -> set[str]:
    """Return the roles that active rules of the server give."""
    rules = await db.exec(
        select(Rule.role_id).where(Rule.server_id == server_id, Rule.state == "active", col(Rule.deleted_at).is_(None))
    )
    return set(rules.all())


async def _rivals(db: AsyncSession, move: ServerMove, named: bool) -> dict[str, tuple[MoveRival, ...]]:
    """Return by role who else moved it; people only with a name if `named`."""
    rows = await db.execute(
        "SELECT role_id, CASE WHEN :named OR bool_or(actor_bot) THEN actor_name END, max(at) "
        "FROM rival_move WHERE server_id = :server "
        "AND role_id = ANY(CAST(:roles AS text[])) AND at > now() - CAST(:shown AS interval) "
        "GROUP BY role_id, actor_id, actor_name ORDER BY max(at) DESC LIMIT 500",
        {"server": move.server_id, "roles": move.roles, "shown": RIVALS_SHOWN, "named": named},
    )
    found: dict[str, tuple[MoveRival, ...]] = {}
    for role_id, name, at in rows.all():
        found[role_id] = (*found.get(role_id, ()), MoveRival(name, at))
    return found


async def _taken(db: AsyncSession, move: ServerMove) -> dict[str, int]:
    """Return, by role, how many members lost it since the approval to whom somebody else had given it."""
    if move.approved_at is None:
        return {}
    rows = await db.execute(_TAKEN, {"server": move.server_id, "roles": move.roles, "since": move.approved_at})
    return {str(role_id): int(total) for role_id, total in rows.all()}


_TAKEN = """
    SELECT role_id, count(DISTINCT subject) FROM event
    WHERE server_id = :server AND role_id = ANY(CAST(:roles AS text[])) AND kind = 'role.taken'
    AND at >= :since AND data ->> 'hadBefore' = 'true' GROUP BY role_id
"""
