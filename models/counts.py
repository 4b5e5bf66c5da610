"""Counts of the log and of the ledger that the database keeps, so that no screen has to count their rows.

Triggers write changes to `rollup_delta` in the transaction that makes them. Each change is a separate row, because
writers of one shared count would wait for each other. A job folds the rows into `rollup` and `holder_count`; readers
add the unfolded rows.

A member counts as verified in a server if they are not a bot and have a proved wallet that counts there. Triggers
record people whose verification may have changed in `verified_stale`, in the transaction that changes it. A job then
reads these people again and corrects the counts. Readers add the correction for people who are still recorded.
"""

from datetime import date

from sqlalchemy import ARRAY, BigInteger, Date, Index, Integer, text
from sqlmodel import Field

from models.db.row import Row


class Rollup(Row, table=True):
    """The number of times that something happened on one day (in UTC)."""

    server_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    """0 for events without a server."""
    kind: str = Field(primary_key=True)
    """A kind of log lines; `holders`, the change in the number of a rule's holders since the day before; or `members`,
    the change in the number of the server's members, without bots."""
    day: date = Field(primary_key=True)
    rule_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    """0 for log lines about no rule, or about several."""
    total: int = Field(sa_type=BigInteger)


class HolderCount(Row, table=True):
    """The number of members who hold a rule's role because of that rule."""

    server_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    rule_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    total: int = Field(sa_type=BigInteger)


class RollupDelta(Row, table=True):
    """A change to a `rollup` or `holder_count` that is not folded yet."""

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    server_id: int
    kind: str
    day: date
    rule_id: int
    total: int = Field(sa_type=BigInteger)


class VerifiedPerson(Row, table=True):
    """A person as they were last counted."""

    discord_id: str = Field(primary_key=True)
    servers: list[int] = Field(sa_type=ARRAY(Integer))  # pyright: ignore[reportArgumentType]
    """The servers where they are verified, in the order of ids; never empty."""
    proved_on: list[date] = Field(sa_type=ARRAY(Date))  # pyright: ignore[reportArgumentType]
    """The days (in UTC) of their proofs, once for each proof."""


class VerifiedCount(Row, table=True):
    """The number of people who are verified in a server."""

    server_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    total: int = Field(sa_type=BigInteger)


class Audience(Row, table=True):
    """The number of people who are verified in exactly these servers, and the number of their proofs on each day.

    With it, people and proofs in several servers are counted once without reading their rows. Discord lets nobody join
    more than 200 servers, so the key stays short.
    """

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_audience_servers", "servers", postgresql_using="gin"),
        Index("ix_audience_empty", "day", postgresql_where=text("total = 0")),
    )

    servers: list[int] = Field(primary_key=True, sa_type=ARRAY(Integer))  # pyright: ignore[reportArgumentType]
    day: date = Field(primary_key=True)
    """The day (in UTC) of the proofs; 1970-01-01 for the count of people."""
    total: int = Field(sa_type=BigInteger)


class VerifiedStale(Row, table=True):
    """A person whose verification or proofs may have changed since they were counted."""

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    discord_id: str
