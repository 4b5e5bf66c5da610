"""What happens to rules by themselves: paused when their role cannot be given, gone when nothing is left of them."""

from sqlalchemy import delete, text, update
from sqlmodel import col

from models import Grant, Rule, now
from models.database import AsyncSession
from services import events


async def pause_role(db: AsyncSession, server_id: int, role_id: str, reason: str) -> int:
    """Pause every deciding rule of a role with the reason why; what they gave stays. Tells how many were paused."""
    result = await db.execute(
        update(Rule)
        .where(
            col(Rule.server_id) == server_id,
            col(Rule.role_id) == role_id,
            col(Rule.state) == "active",
            col(Rule.deleted_at).is_(None),
        )
        .values(state="paused", pause_reason=reason, updated_at=now())
        .returning(col(Rule.id))
    )
    paused = [int(rule_id) for (rule_id,) in result.all()]
    await events.record_all(
        db,
        [
            events.line("rule.paused", server_id=server_id, role_id=role_id, rule_id=rule_id, data={"reason": reason})
            for rule_id in paused
        ],
    )
    if paused:
        # Removals that were under way rest with their rules.
        await db.execute(
            update(Grant)
            .where(
                col(Grant.server_id) == server_id,
                col(Grant.role_id) == role_id,
                col(Grant.state) == "taking",
                col(Grant.rule_ids).op("&&")(paused),
            )
            .values(state="held", next_at=None, attempts=0)
        )
    return len(paused)


async def role_gone(db: AsyncSession, server_id: int, role_id: str) -> None:
    """The role was deleted in Discord: nobody has it any more, and its rules rest until another is chosen."""
    await pause_role(db, server_id, role_id, "The role was deleted in Discord. Choose another role for this rule.")
    await db.execute(delete(Grant).where(col(Grant.server_id) == server_id, col(Grant.role_id) == role_id))
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
