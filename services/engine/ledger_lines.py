"""Lines of the ledger by the decisions that are about them: found, read as they were loaded, and updated in sets."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Table, bindparam, func, or_, update
from sqlmodel import SQLModel, col

from models import Grant
from models.db.session import AsyncSession
from services.engine.outcome import Looked, facts_of
from services.engine.policy import Decision
from services.roles.in_doubt import Line

Pair = tuple[Looked, Decision]


def line_of(pair: Pair) -> dict[str, Any]:
    """The columns that name the line."""
    item, decision = pair
    return {
        "server_id": item.case.claim.server_id, "discord_id": item.case.claim.discord_id,
        "role_id": decision.role_id,
    }  # fmt: skip


def line(pair: Pair) -> Line:
    """The same as one value."""
    item, decision = pair
    return item.case.claim.server_id, item.case.claim.discord_id, decision.role_id


def bound(pair: Pair) -> dict[str, Any]:
    """The columns as parameters of `this_line`."""
    return {f"b_{name}": value for name, value in line_of(pair).items()}


def this_line() -> Any:
    """The condition for a statement that runs for many lines, made anew for each statement."""
    return (
        (col(Grant.server_id) == bindparam("b_server_id"))
        & (col(Grant.discord_id) == bindparam("b_discord_id"))
        & (col(Grant.role_id) == bindparam("b_role_id"))
    )


def state_of(pair: Pair) -> str:
    """The line's state as it was loaded; empty where there was none."""
    grant = facts_of(pair[0], pair[1].role_id)
    return grant.state if grant else ""


async def update_lines(
    db: AsyncSession,
    rows: Sequence[dict[str, Any]],
    fixed: dict[str, Any],
    own: Sequence[str],
    stamped: Sequence[str],
    states: Sequence[str],
) -> None:
    """Update the grants that `rows` name and that are still in one of `states`; `own` columns differ by row.

    `stamped` ones get the transaction's time by the database's clock: by that, intents and the writer's lease are told
    apart.
    """
    if not rows:
        return
    values: dict[str, Any] = {**fixed, **{name: bindparam(f"v_{name}") for name in own}}
    values.update({name: func.now() for name in stamped})
    prepared = [{(key if key.startswith("b_") else f"v_{key}"): value for key, value in row.items()} for row in rows]
    # In one order, so that two rounds that overlap wait for each other instead of deadlocking.
    prepared.sort(key=lambda row: (row["b_server_id"], row["b_discord_id"], row["b_role_id"]))
    table: Table = SQLModel.metadata.tables["grant"]
    # Spelt out, because a list of unknown length cannot be bound when a statement runs for many rows.
    still = or_(*(col(Grant.state) == state for state in states))
    connection = await db.connection()
    await connection.execute(update(table).where(this_line(), still).values(values), prepared)
