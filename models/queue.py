"""The queue of members to reconcile, and what feeds it: schedules, cursors, sightings; counters for monitors."""

from datetime import datetime

from sqlalchemy import BigInteger, DateTime, Index, text
from sqlmodel import Field

from models.db.row import Row
from models.db.types import maybe_moment, moment


class Due(Row, table=True):
    """A queued member. Queueing a member twice keeps one row with the greater urgency."""

    __table_args__ = (Index("ix_due_turn", text("priority DESC"), "turn", "due_at"),)  # pyright: ignore[reportUnannotatedClassAttribute]

    kind: str = Field(primary_key=True)
    """`member`: every role of one member of one server."""
    key: str = Field(primary_key=True)
    """For `member`: `<server id>:<Discord id>`."""
    priority: int = 0
    turn: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """The order in which servers take turns: it counts up over a server's members that were queued together."""
    due_at: datetime = moment()
    version: int = Field(default=1, sa_type=BigInteger)
    seen: int = Field(default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    """The part of `version` that counts only sightings of transfers."""
    overtaken: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """Reconciles in a row that would have taken a role but were overtaken by sightings."""
    attempts: int = 0
    claimed_until: datetime | None = maybe_moment()
    claimed_by: str | None = None
    reason: str | None = None
    """Why the last reconcile could not answer everything."""
    request_id: str | None = None
    """The request that last queued the member, if any, as in the processes' logs."""


class Schedule(Row, table=True):
    """One scheduled job; the row decides which process runs it."""

    name: str = Field(primary_key=True)
    next_at: datetime = moment()
    started_at: datetime | None = maybe_moment()
    finished_at: datetime | None = maybe_moment()
    done: int = 0
    total: int = 0


class Cursor(Row, table=True):
    """The block up to which a chain has been followed, and the lease of its follower."""

    chain: str = Field(primary_key=True)
    """The chain's key for contracts; `<chain>:wallets` for members' wallets."""
    block: int = Field(sa_type=BigInteger)
    block_hash: str = ""
    head: int = Field(default=0, sa_type=BigInteger)
    """The chain's newest block at the last poll."""
    fault: str | None = None
    """Why the last poll failed."""
    owner: str | None = None
    owned_until: datetime | None = maybe_moment()
    updated_at: datetime = moment()
    slices: int = Field(default=1, sa_column_kwargs={"server_default": "1"})
    """The number of polls over which the addresses are split, if there are too many for one."""


class Quarantine(Row, table=True):
    """An address with more logs in a block than a node returns, which is not followed until `until`.

    `ended_at` is set when the first poll that includes the address again is stored.
    """

    chain: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    """`contracts` or `wallets`: how the logs are requested."""
    address: str = Field(primary_key=True)
    reason: str
    times: int = 1
    """The number of quarantines in a row; each is longer than the one before."""
    since: datetime = moment()
    until: datetime = Field(sa_type=DateTime(timezone=True))  # pyright: ignore[reportArgumentType, reportCallIssue]
    ended_at: datetime | None = maybe_moment()


class Sighting(Row, table=True):
    """The newest block in which a token moved to or from a wallet. Answers from earlier blocks are not used."""

    chain: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    block: int = Field(sa_type=BigInteger)
    seen_at: datetime = moment()


class Counter(Row, table=True):
    """A counter for monitoring, over all processes and since the database was created."""

    name: str = Field(primary_key=True)
    label: str = Field(primary_key=True)
    outcome: str = Field(primary_key=True)
    total: int = Field(default=0, sa_type=BigInteger)


class WatchedChange(Row, table=True):
    """That rules, servers, wallets or delegations changed: followers compare these rows with those they saw.

    Triggers add a row in each transaction with a change and delete earlier ones.
    """

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    what: str
    """The table that changed."""
    noted_in: int | None = Field(default=None, sa_type=BigInteger)
    """PostgreSQL's number of the transaction that made the change; the database fills it in."""
