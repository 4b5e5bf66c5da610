"""Delegations to members' wallets, as each chain's registry last showed them."""

from datetime import datetime
from decimal import Decimal

from sqlalchemy import BigInteger, Index, Numeric
from sqlmodel import Field, SQLModel

from models.db.types import maybe_moment, moment


class Delegation(SQLModel, table=True):
    """The vault lets the delegate, a member's wallet, speak for it (delegate.xyz v2).

    For everything it holds there, or with a `contract` for that one, or with a `token_id` for that token: at most
    `amount` of it if it is an ERC-1155's, and if it is an ERC-721's only with `single`. Addresses are in lower case.
    """

    __table_args__ = (Index("ix_delegation_vault", "vault"),)  # pyright: ignore[reportUnannotatedClassAttribute]

    chain: str = Field(primary_key=True)
    delegate: str = Field(primary_key=True)
    vault: str = Field(primary_key=True)
    contract: str = Field(primary_key=True)
    token_id: str = Field(primary_key=True)
    amount: Decimal | None = Field(default=None, sa_type=Numeric(78, 0))  # pyright: ignore[reportArgumentType]
    single: bool = Field(default=False, sa_column_kwargs={"server_default": "false"})
    first_seen_at: datetime = moment()
    """When we first read it: if two members could count the same token, the older claim has precedence."""


class DelegationRead(SQLModel, table=True):
    """When a wallet's delegations were last read, at which block of which node; `fault` is why they are unknown."""

    __tablename__ = "delegation_read"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    chain: str = Field(primary_key=True)
    delegate: str = Field(primary_key=True)
    block: int = Field(sa_type=BigInteger)
    endpoint: int
    read_at: datetime | None = maybe_moment()
    more: bool = False
    """Whether there are more than are stored."""
    fault: str | None = None
