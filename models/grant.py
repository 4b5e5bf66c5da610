"""The ledger of roles: what we gave and why, what is in progress, what was stopped, and what rivals changed."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, Index, Integer, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field

from models.db.row import Row
from models.db.types import document, maybe_moment, moment


class GrantKey(NamedTuple):
    """What identifies a line of the ledger: one role of one member of one server."""

    server_id: int
    discord_id: str
    role_id: str


class Grant(Row, table=True):
    """A role that we gave a member, or are about to give or take; the row is deleted with the role."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        UniqueConstraint("server_id", "discord_id", "role_id"),
        Index("ix_grant_open", "next_at", postgresql_where=text("state IN ('giving', 'taking')")),
        Index(
            "ix_grant_turns", "server_id", "role_id", "state",
            text("(gift_since IS NOT NULL OR cardinality(rule_ids) = 0)"), "next_at", "id",
            postgresql_where=text("state IN ('giving', 'taking')"),
        ),
    )  # fmt: skip

    id: int | None = Field(default=None, primary_key=True)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE", index=True)
    discord_id: str = Field(index=True)
    role_id: str
    rule_ids: list[int] = Field(default_factory=list, sa_type=ARRAY(Integer))  # pyright: ignore[reportArgumentType]
    """The rules that said yes when the role was last confirmed."""
    state: str
    """`giving`: to be given, perhaps already sent. `held`: the member has it from us. `taking`: to be taken, perhaps
    already sent. `lost`: somebody else took our role."""
    had_before: bool = False
    """Whether the member had the role when the grant was created."""
    evidence: dict[str, Any] = document()
    no_since: datetime | None = maybe_moment()
    """When every rule for this role first said no: the start of the grace time."""
    first_no: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))  # pyright: ignore[reportArgumentType]
    """The answers that would take the role; a later reconcile has to confirm them."""
    gift_since: datetime | None = maybe_moment()
    """When an admin let the member keep the role although no rule says yes; None after the next yes."""
    held_back_at: datetime | None = maybe_moment()
    """When the breaker last stopped this role's removal."""
    batch: UUID | None = None
    """The batch of removals to which this one belongs, as in the log."""
    intended_at: datetime | None = maybe_moment()
    next_at: datetime | None = maybe_moment()
    attempts: int = 0
    last_error: str | None = None
    request_id: str | None = None
    """The request that caused the pending change, if there was one."""
    created_at: datetime = moment()
    updated_at: datetime = moment()


class Breaker(Row, table=True):
    """A trip of the breaker: removals of one role were stopped because too many members would have lost it at once."""

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    role_id: str = Field(primary_key=True)
    tripped_at: datetime = moment()
    would_lose: int
    holders: int
    approved_at: datetime | None = maybe_moment()
    approved_by: str | None = None
    dismissed_at: datetime | None = maybe_moment()
    """When an admin decided that everybody keeps the role instead."""
    dismissed_by: str | None = None


class Unanswered(Row, table=True):
    """A role write in doubt: Discord did not answer it, and may still carry it out."""

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    discord_id: str = Field(primary_key=True)
    role_id: str = Field(primary_key=True)
    giving: bool = Field(primary_key=True)
    at: datetime = moment()


class RoleRefusal(Row, table=True):
    """A role for which Discord refused a change; until a change succeeds, changes are tried one at a time."""

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    role_id: str = Field(primary_key=True)
    count: int
    """Refused attempts in a row; each makes the pause before the next attempt longer."""
    next_at: datetime = moment()
    """When a change is tried again while the role's rules are paused."""


class RivalMove(Row, table=True):
    """A change by somebody else to a role that a rule of ours gives, with their name if the server's log has it."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_rival_move_line", "server_id", "discord_id", "role_id", "at"),
        Index("ix_rival_move_server", "server_id", "at"),
        Index("ix_rival_move_next", "next_at", postgresql_where=text("next_at IS NOT NULL")),
        Index(
            "ix_rival_move_entry", "server_id", "entry_id", "role_id", unique=True,
            postgresql_where=text("entry_id IS NOT NULL"),
        ),
    )  # fmt: skip

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE")
    discord_id: str
    """The Discord id of the member whose role was changed."""
    role_id: str
    taken: bool
    """Whether the role was taken; otherwise it was given."""
    at: datetime = moment()
    """When it happened according to the server's log, else when we noticed it."""
    since: datetime | None = maybe_moment()
    """When we last changed this role of the member; the move is newer."""
    against: bool = False
    """Whether it reverses our change, and still counts towards a truce."""
    naming: str = "open"
    """`open`: the server's log has to be read. `named`: the log names the actor. `unknown`: it does not."""
    reason: str | None = None
    """Why the name is unknown: `no_permission` or `not_found`."""
    entry_id: str | None = None
    """The id of the entry in the server's log."""
    actor_id: str | None = None
    actor_name: str | None = None
    actor_bot: bool = False
    attempts: int = 0
    next_at: datetime | None = maybe_moment()
    """When the server's log is next read for this move."""


class Truce(Row, table=True):
    """A role of a member that we neither give nor take for a while, because others reversed us repeatedly."""

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    discord_id: str = Field(primary_key=True)
    role_id: str = Field(primary_key=True)
    since: datetime = moment()
    until: datetime = moment(index=True)
