"""Providers' last answers, limits and refusals, and the alerts to admins."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Index, text
from sqlmodel import Field

from models.db.row import Row
from models.db.types import document, maybe_moment, moment


class ProviderState(Row, table=True):
    """One provider's last answer to any of our processes."""

    provider: str = Field(primary_key=True)
    """`discord`, `opensea`, `bot` (our own connection to Discord's gateway), or a node: `base:0`."""
    state: str
    """`ok`, `stale`, `down`, `busy`, `confused` or `refused`."""
    reason: str | None = None
    since: datetime = moment()
    """When the provider entered this state."""
    checked_at: datetime = moment()
    ok_at: datetime | None = maybe_moment()
    block: int | None = Field(default=None, sa_type=BigInteger)
    block_time: datetime | None = maybe_moment()


class MarketLimit(Row, table=True):
    """A marketplace's limit for our key, as our processes last read it.

    `gateways/marketplaces/quota.py` divides it among uses.
    """

    provider: str = Field(primary_key=True)
    reads: int = Field(primary_key=True)
    """The limit: reads in a window. Some groups of calls have a separate limit."""
    seconds: float
    """The length of a window."""
    base: float
    """Reads of this window that all uses share."""
    remaining: float
    resets_at: datetime = moment()
    told_at: datetime = moment()
    kept: dict[str, Any] = document()
    """Reads reserved for each use, by its name."""


class NodeLimit(Row, table=True):
    """The learned limits of a node; null means unknown, or that no limit was reached.

    `gateways/evm/rpc/node_limits.py` learns them.
    """

    node: str = Field(primary_key=True)
    """A digest of the node's URL, which may contain a key."""
    log_blocks: int | None = None
    logs_need_address: bool | None = None
    batch: int | None = None
    state_override: bool | None = None
    states: int | None = None
    finalized: bool | None = None
    seen_at: datetime = moment()


class Alert(Row, table=True):
    """A problem reported to a server's admins in their log channel, once when it begins and once when it ends."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_alert_open", "server_id", "key", unique=True, postgresql_where=text("ended_at IS NULL")),
    )

    id: int | None = Field(default=None, primary_key=True)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE", index=True)
    key: str
    """The problem, so that each problem has one alert: `rule:7:dangerous`, `breaker:<role>`, `node:base:0`."""
    title: str
    text: str
    mend: str
    began_at: datetime = moment()
    told_at: datetime | None = maybe_moment()
    ended_at: datetime | None = maybe_moment()
    end_told_at: datetime | None = maybe_moment()
    attempts: int = 0
    next_at: datetime = moment()
    last_error: str | None = None


class Refusal(Row, table=True):
    """The number of requests of all processes that Discord refused in one minute."""

    minute: datetime = Field(primary_key=True, sa_type=DateTime(timezone=True))  # pyright: ignore[reportArgumentType, reportCallIssue]
    count: int


class GuildRefusal(Row, table=True):
    """The number of requests about one guild that Discord refused in the present window, and the guild's pause."""

    guild_id: str = Field(primary_key=True)
    began_at: datetime = moment()
    count: int
    rests: int = 0
    """The number of pauses so far; each makes the next one longer."""
    rests_until: datetime | None = maybe_moment()


class RateShare(Row, table=True):
    """One process's share of the requests a second that Discord allows; it expires if the process stops reporting."""

    process: str = Field(primary_key=True)
    kind: str
    """`web`, `bot` or `jobs`."""
    wanted: float
    """Requests a second that the process recently needed."""
    share: float
    """Requests a second that the process may send."""
    seen_at: datetime = moment()
    paused_until: datetime | None = maybe_moment()
    """The end of a global pause that an answer to this process asked for."""
