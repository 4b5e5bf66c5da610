"""What is to be done: members to look at, schedules, and how far each chain is followed."""

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlmodel import Field, SQLModel

from models.types import maybe_moment, moment


class Due(SQLModel, table=True):
    """Somebody who must be looked at; unique, so marking twice is marking once with the greater urgency."""

    __table_args__ = (Index("ix_due_next", "priority", "due_at"),)  # pyright: ignore[reportUnannotatedClassAttribute]

    kind: str = Field(primary_key=True)
    """`member`: every role of one member of one server."""
    key: str = Field(primary_key=True)
    """For `member`: `<server id>:<Discord id>`."""
    priority: int = 0
    due_at: datetime = moment()
    version: int = Field(default=1, sa_type=BigInteger)
    attempts: int = 0
    claimed_until: datetime | None = maybe_moment()
    claimed_by: str | None = None


class Schedule(SQLModel, table=True):
    """One thing that the clock does; the row decides which process does it."""

    name: str = Field(primary_key=True)
    next_at: datetime = moment()
    started_at: datetime | None = maybe_moment()
    finished_at: datetime | None = maybe_moment()
    done: int = 0
    total: int = 0


class Cursor(SQLModel, table=True):
    """How far a chain is followed, and who follows it until when."""

    chain: str = Field(primary_key=True)
    block: int = Field(sa_type=BigInteger)
    block_hash: str = ""
    owner: str | None = None
    owned_until: datetime | None = maybe_moment()
    updated_at: datetime = moment()
