"""Rules, which say what holdings earn what role, and the lists of addresses that rules name."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index, UniqueConstraint, Uuid, false, text
from sqlmodel import Field

from models.db.row import Row
from models.db.types import document, maybe_moment, moment, texts


class Rule(Row, table=True):
    """One rule of a server. `expression` decides; the flat fields repeat the form with which the rule was made."""

    id: int | None = Field(default=None, primary_key=True)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE", index=True)
    name: str
    role_id: str = Field(index=True)
    role_name: str
    role_color: str = "#5865F2"
    expression: dict[str, Any] = document()
    verification_type: str
    contract_address: str
    blockchain: str
    min_tokens: int = 1
    trait_type: str | None = None
    trait_value: str | None = None
    token_ids: list[str] = texts()
    removal_mode: str = "now"
    """`now`, or `grace` with its hours."""
    removal_hours: int = 0
    state: str = "active"
    """`active`, `shadow` or `paused`."""
    pause_reason: str | None = None
    takes_over: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    """Whether an admin handed the role over: its rules then judge all holders, also those who got it from others."""
    delegated: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    """Whether delegated vaults of a member's wallets count as well (delegate.xyz)."""
    pause_cause: str | None = None
    """The cause of an automatic pause (`role_gone`, `dangerous`, `above_bot` and so on); the rule resumes
    automatically when the cause ends. None if an admin paused it."""
    paused_at: datetime | None = maybe_moment()
    created_by: str
    """The Discord id of the rule's creator."""
    created_at: datetime = moment()
    updated_at: datetime = moment()
    deleted_at: datetime | None = maybe_moment()
    """When an admin deleted the rule. The row is removed once the roles that only this rule kept are settled."""


class RuleRequest(Row, table=True):
    """The request that created a rule, if it had an `Idempotency-Key`: repeated, it creates no second one."""

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    key: bytes = Field(primary_key=True)
    """SHA-256 of the person and the key."""
    body: bytes
    """SHA-256 of the rule as it was sent."""
    rule_id: int = Field(foreign_key="rule.id", ondelete="CASCADE", index=True)


class AddressListRow(Row, table=True):
    """One address list of a server, identified by a digest of its addresses."""

    __tablename__ = "address_list"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]
    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        UniqueConstraint("server_id", "digest"),
    )

    id: int | None = Field(default=None, primary_key=True)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE")
    digest: str
    count: int
    used_at: datetime = moment()
    """When it was stored, or a rule was last saved with it."""


class ListedAddress(Row, table=True):
    """One address of a list; EVM addresses are in lower case."""

    __tablename__ = "address_list_entry"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    list_id: int = Field(primary_key=True, foreign_key="address_list.id", ondelete="CASCADE")
    address: str = Field(primary_key=True, index=True)


class ContractMigration(Row, table=True):
    """The move of a collection or coin to another contract, during which rules count both contracts."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_contract_migration_open", "until", postgresql_where=text("state = 'open'")),
        Index("ix_contract_migration_server", "server_id", "id"),
    )

    id: int | None = Field(default=None, primary_key=True)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE")
    state: str = "open"
    """`open`, then `ended` (only the new contract counts) or `undone`."""
    chain: str
    contract: str
    new_chain: str
    new_contract: str
    until: datetime | None = maybe_moment()
    """When it ends; None until an admin ends it."""
    rules: dict[str, Any] = document()
    """Rule's id → its expression with both contracts (`both`) and with the new one alone (`only`)."""
    batch: UUID = Field(sa_type=Uuid)
    """The batch of the log lines about its beginning."""
    created_at: datetime = moment()
    ended_at: datetime | None = maybe_moment()
