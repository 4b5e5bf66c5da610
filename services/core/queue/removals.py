"""Cancel removals that were decided and not sent yet, before a worker decides about their members again."""

from sqlalchemy import ColumnElement, func, update
from sqlmodel import col, select

from models import Due, Grant
from models.db.session import AsyncSession

IS_QUEUED = (
    select(Due.key)
    .where(col(Due.kind) == "member", col(Due.key) == func.concat(col(Grant.server_id), ":", col(Grant.discord_id)))
    .exists()
)
"""The condition on grants that their member is queued. Nothing would begin the removal of another one again."""


async def call_off_where(db: AsyncSession, *which: ColumnElement[bool]) -> None:
    """Cancel the removals of the grants that meet these conditions. Queue the members first."""
    await db.execute(
        update(Grant).where(col(Grant.state) == "taking", *which).values(state="held", next_at=None, attempts=0)
    )


async def call_off_removals_from(db: AsyncSession, discord_id: str) -> None:
    """Cancel a person's removals in all servers, because more of their wallets count now. Queue the person first.

    Otherwise a removal that was decided before would still be sent. Where the person is not queued, it continues.
    """
    await call_off_where(db, col(Grant.discord_id) == discord_id, IS_QUEUED)
