"""Counts of the log and of the ledger that the database keeps, so that no screen reads either for a number.

Triggers write changes to `rollup_delta` in the transaction that makes them: rows of their own, because writers of one
shared count would wait for each other. A job folds them into `rollup` and `holder_count`; readers add the unfolded
ones.
"""

from datetime import date

from sqlalchemy import BigInteger
from sqlmodel import Field, SQLModel


class Rollup(SQLModel, table=True):
    """How often something happened on one day (in UTC)."""

    server_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    """0 for events without a server."""
    kind: str = Field(primary_key=True)
    """A kind of the log's lines; `holders`, the change in the number of a rule's holders since the day before; or
    `members`, the change in the number of the server's members, without bots."""
    day: date = Field(primary_key=True)
    rule_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    """0 for lines about no rule, or about several."""
    total: int = Field(sa_type=BigInteger)


class HolderCount(SQLModel, table=True):
    """How many members hold a rule's role by it."""

    __tablename__ = "holder_count"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    server_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    rule_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    total: int = Field(sa_type=BigInteger)


class RollupDelta(SQLModel, table=True):
    """A change to such a count that is not folded yet."""

    __tablename__ = "rollup_delta"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    server_id: int
    kind: str
    day: date
    rule_id: int
    total: int = Field(sa_type=BigInteger)
