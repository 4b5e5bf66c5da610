"""Counts that the database keeps of the log and of the ledger, so that nobody has to read either to show a number.

Triggers write what changes to `rollup_delta` in the transaction that changes it: rows of their own, because a count
that many add to would have them wait for each other. The clock folds them into `rollup` and `holder_count`; a reader
adds what is not folded yet.
"""

from datetime import date

from sqlalchemy import BigInteger
from sqlmodel import Field, SQLModel


class Rollup(SQLModel, table=True):
    """How often something happened on one day (in UTC)."""

    server_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    """0 for what happened in no server."""
    kind: str = Field(primary_key=True)
    """A kind of the log's lines; `holders`, by how many more members hold a rule's role since the day before; or
    `members`, by how many more members the server has, without bots."""
    day: date = Field(primary_key=True)
    rule_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    """0 for lines about no rule, or about several."""
    total: int = Field(sa_type=BigInteger)


class HolderCount(SQLModel, table=True):
    """How many members have a rule's role by it."""

    __tablename__ = "holder_count"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    server_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    rule_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    total: int = Field(sa_type=BigInteger)


class RollupDelta(SQLModel, table=True):
    """A step of such a count that is not folded yet."""

    __tablename__ = "rollup_delta"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    server_id: int
    kind: str
    day: date
    rule_id: int
    total: int = Field(sa_type=BigInteger)
