"""What happens to rules by themselves: paused when their role cannot be given, gone when nothing is left of them."""

from uuid import uuid4

from sqlalchemy import ColumnElement, delete, text, true, update
from sqlmodel import col

from models import Grant, Rule, now
from models.session import AsyncSession
from services import due, events

AWAY = "bot_away"
AWAY_REASON = "The bot is not in this server, so nothing can be given or taken."
GONE = "role_gone"
REFUSED = "refused"
"""Causes of a pause beside those that `role_safety.judge` names."""


async def pause_role(db: AsyncSession, server_id: int, role_id: str, reason: str, cause: str) -> int:
    """Pause every deciding rule of a role with the reason why; what they gave stays. Tells how many were paused.

    A rule that rests for another cause already gets the new one; a rule that an admin paused is left alone.
    """
    return await _pause(db, server_id, reason, cause, col(Rule.role_id) == role_id)


async def pause_all(db: AsyncSession, server_id: int, reason: str, cause: str) -> int:
    """Pause every deciding rule of a server."""
    return await _pause(db, server_id, reason, cause, true())


async def _pause(db: AsyncSession, server_id: int, reason: str, cause: str, which: ColumnElement[bool]) -> int:
    by_itself = (col(Rule.state) == "paused") & (col(Rule.pause_cause).is_not(None)) & (col(Rule.pause_cause) != cause)
    result = await db.execute(
        update(Rule)
        .where(
            col(Rule.server_id) == server_id,
            which,
            (col(Rule.state) == "active") | by_itself,
            col(Rule.deleted_at).is_(None),
        )
        .values(state="paused", pause_reason=reason, pause_cause=cause, paused_at=now(), updated_at=now())
        .returning(col(Rule.id), col(Rule.role_id))
    )
    paused = [(int(rule_id), str(role_id)) for rule_id, role_id in result.all()]
    batch = uuid4()
    await events.record_all(
        db,
        [
            events.line(
                "rule.paused", server_id=server_id, role_id=role_id, rule_id=rule_id, batch=batch,
                data={"reason": reason, "cause": cause},
            )
            for rule_id, role_id in paused
        ],
    )  # fmt: skip
    if paused:
        # Removals that were under way rest with their rules.
        await db.execute(
            update(Grant)
            .where(
                col(Grant.server_id) == server_id,
                col(Grant.role_id).in_({role_id for _, role_id in paused}),
                col(Grant.state) == "taking",
                col(Grant.rule_ids).op("&&")([rule_id for rule_id, _ in paused]),
            )
            .values(state="held", next_at=None, attempts=0)
        )
    return len(paused)


async def resume_role(db: AsyncSession, server_id: int, role_id: str) -> int:
    """What stood against the role is mended: its rules that were paused by themselves decide again, at once."""
    result = await db.execute(
        update(Rule)
        .where(
            col(Rule.server_id) == server_id,
            col(Rule.role_id) == role_id,
            col(Rule.state) == "paused",
            col(Rule.pause_cause).is_not(None),
            col(Rule.deleted_at).is_(None),
        )
        .values(state="active", pause_reason=None, pause_cause=None, paused_at=None, updated_at=now())
        .returning(col(Rule.id))
    )
    resumed = [int(rule_id) for (rule_id,) in result.all()]
    batch = uuid4()
    await events.record_all(
        db,
        [
            events.line(
                "rule.resumed", server_id=server_id, role_id=role_id, rule_id=rule_id, batch=batch,
                data={"healed": True},
            )
            for rule_id in resumed
        ],
    )  # fmt: skip
    if resumed:
        await due.mark_server(db, server_id, due.CHANGED)
    return len(resumed)


async def role_gone(db: AsyncSession, server_id: int, role_id: str) -> None:
    """The role was deleted in Discord: nobody has it any more, and its rules rest until another is chosen."""
    reason = "The role was deleted in Discord. Choose another role for this rule."
    await pause_role(db, server_id, role_id, reason, GONE)
    held = await db.execute(
        delete(Grant).where(col(Grant.server_id) == server_id, col(Grant.role_id) == role_id).returning(col(Grant.id))
    )
    if holders := len(held.all()):
        await events.record(
            db, events.line("role.deleted", server_id=server_id, role_id=role_id, data={"holders": holders})
        )
    await sweep_deleted(db)


async def sweep_deleted(db: AsyncSession) -> int:
    """Let deleted rules go for good once no role hangs on them any more; tells how many went."""
    result = await db.execute(
        text(
            """
            DELETE FROM rule r WHERE r.deleted_at IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM "grant" g WHERE g.server_id = r.server_id AND r.id = ANY(g.rule_ids))
            RETURNING r.id
            """
        )
    )
    return len(result.all())
