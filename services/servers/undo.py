"""Undoing what the audit log says was done: a rule comes back as it was, a role goes back to whom it was taken from."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlmodel import col, select

from gateways import Gateways
from models import Event
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.core.errors import BatchNotFound, Conflict, FieldRefused
from services.guilds import permissions
from services.guilds.permissions import Rights
from services.servers import undo_roles, undo_rules
from services.servers.activity import UNDONE


@dataclass(frozen=True, slots=True)
class UndoView:
    """What undoing a batch does, or did, in words, and how many members get a role by it at once."""

    batch: str
    text: str
    members: int


async def preview(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, batch: UUID) -> UndoView:
    """What undoing the batch would do: it is done and taken back again, so that nothing of it stays.

    Raises ServerNotFound, BatchNotFound, Conflict when it cannot be undone (any more), ProviderUnavailable.
    """
    nothing = await db.begin_nested()
    try:
        return await undo(db, outside, actor, server_id, batch)
    finally:
        await nothing.rollback()


async def undo(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, batch: UUID) -> UndoView:
    """Undo the batch, and note it in the log; a batch is undone once. Raises as `preview` does."""
    found = await permissions.by_id(db, outside, actor, server_id)
    await db.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:batch, 0))"), {"batch": str(batch)})
    rows = await db.exec(
        select(Event).where(Event.server_id == server_id, Event.batch == batch).order_by(col(Event.id))
    )
    happened = rows.all()
    if not happened:
        raise BatchNotFound
    if any(event.kind == UNDONE for event in happened):
        raise Conflict("This was undone before.")
    try:
        words, members = await _undone(db, found, actor, happened[0])
    except FieldRefused as refused:
        raise Conflict(refused.message) from None
    await audit.record(db, _line(happened[0], actor, members))
    return UndoView(str(batch), words, members)


async def _undone(db: AsyncSession, found: Rights, actor: Actor, event: Event) -> tuple[str, int]:
    match event.kind:
        case "role.taken":
            return await undo_roles.give_back(db, found, event)
        case "role.lost":
            return await undo_roles.give_again(db, found, event)
        case "rule.deleted":
            return await undo_rules.bring_back(db, found, actor, event), 0
        case "rule.changed":
            return await undo_rules.change_back(db, found, event), 0
        case "rule.paused":
            return await undo_rules.resume(db, found, event), 0
        case _:
            raise Conflict("This cannot be undone.")


def _line(event: Event, actor: Actor, members: int) -> dict[str, object]:
    return audit.line(
        UNDONE, server_id=event.server_id, actor=actor.discord_id, role_id=event.role_id, rule_id=event.rule_id,
        batch=event.batch, data={"of": event.kind, "members": members, **_rule(event)},
    )  # fmt: skip


def _rule(event: Event) -> dict[str, object]:
    """The rule's document, so that the line names the rule whatever becomes of it later."""
    return {name: event.data[name] for name in ("rule", "before", "after") if name in event.data}
