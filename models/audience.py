"""Counts of verified members that the database keeps, so that no screen counts them one by one.

A member is verified in a server if they are not a bot and have a proved wallet that counts there. Triggers record in
`verified_stale` whose verification may have changed, in the transaction that changes it; a job then reads these people
again and corrects the counts. Readers add the correction for those still recorded.
"""

from datetime import date

from sqlalchemy import ARRAY, BigInteger, Date, Index, Integer, text
from sqlmodel import Field, SQLModel


class VerifiedPerson(SQLModel, table=True):
    """A person as they were last counted."""

    __tablename__ = "verified_person"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    discord_id: str = Field(primary_key=True)
    servers: list[int] = Field(sa_type=ARRAY(Integer))  # pyright: ignore[reportArgumentType]
    """The servers where they are verified, in the order of ids; never empty."""
    proved_on: list[date] = Field(sa_type=ARRAY(Date))  # pyright: ignore[reportArgumentType]
    """The days (in UTC) of their proofs, once for each proof."""


class VerifiedCount(SQLModel, table=True):
    """How many people are verified in a server."""

    __tablename__ = "verified_count"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    server_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    total: int = Field(sa_type=BigInteger)


class Audience(SQLModel, table=True):
    """How many people are verified in exactly these servers, and how many proofs of theirs each day has.

    So people and proofs in several servers together are counted once without reading them. Discord lets nobody join
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


class VerifiedStale(SQLModel, table=True):
    """A person whose verification or proofs may have changed since they were counted."""

    __tablename__ = "verified_stale"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    discord_id: str
