"""Cancel removals that were decided and not sent yet, before a worker decides about their members again."""

from typing import Any

from sqlalchemy import ColumnElement, ColumnExpressionArgument, case, func, text, update
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from models import Due, Grant, Member
from models.db.session import AsyncSession

IS_QUEUED = (
    select(Due.key)
    .where(col(Due.kind) == "member", col(Due.key) == func.concat(col(Grant.server_id), ":", col(Grant.discord_id)))
    .exists()
)
"""The condition on grants that their member is queued. Nothing would begin the removal of another one again."""
_IS_THERE = (
    select(Member.discord_id)
    .where(
        col(Member.server_id) == Grant.server_id,
        col(Member.discord_id) == Grant.discord_id,
        func.array_position(col(Member.roles), col(Grant.role_id)).is_not(None),
    )
    .exists()
)
NEVER_GIVEN = col(Grant.evidence)["given"].astext == "false"
"""The condition on grants with the note that their role was never given."""
NOW_GIVEN = text("evidence - 'given'")
"""The evidence of a grant without the note that its role was never given: the member has the role."""


async def call_off_where(db: AsyncSession, *which: ColumnElement[bool]) -> None:
    """Cancel the removals of the grants that meet these conditions: they are `held` again. Queue the members first.

    A role that was never given and is not there may still come: Discord may be carrying out a request whose answer
    nobody waits for. Such a grant keeps the note that it was never given, so that the next reconcile believes nobody to
    have taken the role.
    """
    noted = case((_IS_THERE, NOW_GIVEN), else_=col(Grant.evidence))
    held = {"state": "held", "next_at": None, "attempts": 0, "evidence": noted}
    await db.execute(update(Grant).where(in_order_of_key(col(Grant.state) == "taking", *which)).values(held))


def in_order_of_key(*which: ColumnExpressionArgument[bool]) -> ColumnElement[bool]:
    """Return the condition on the grants that meet these conditions, for a statement that changes many of them.

    It locks them in the order of their keys, as a reconcile does, so that the two wait for each other instead of
    deadlocking.
    """
    # Not correlated: the same table has a row of its own in the statement around this.
    return col(Grant.id).in_(locking_in_order(*which).correlate(None))


def locking_in_order(*which: ColumnExpressionArgument[bool]) -> SelectOfScalar[Any]:
    """Return the statement that locks the grants that meet these conditions, in the order of their keys."""
    order = (col(Grant.server_id), col(Grant.discord_id), col(Grant.role_id))
    return select(Grant.id).where(*which).order_by(*order).with_for_update()


async def call_off_removals_from(db: AsyncSession, discord_id: str) -> None:
    """Cancel a person's removals in all servers, because more of their wallets count now. Queue the person first.

    Otherwise a removal that was decided before would still be sent. Where the person is not queued, it continues.
    """
    await call_off_where(db, col(Grant.discord_id) == discord_id, IS_QUEUED)
