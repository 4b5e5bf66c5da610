"""Delegations to members' wallets, as last read from each chain's registry."""

from datetime import datetime
from decimal import Decimal

from sqlalchemy import BigInteger, Index, Numeric
from sqlmodel import Field

from models.db.row import Row
from models.db.types import maybe_moment, moment


class Delegation(Row, table=True):
    """A vault's permission for the delegate, a member's wallet, to speak for it (delegate.xyz v2).

    It covers everything that the vault holds on the chain; with a `contract` only that contract, with a `token_id` only
    that token. Of an ERC-1155 token it covers at most `amount`; an ERC-721 token only counts with `single`. Addresses
    are in lower case.
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
    """When we first read it. If two members could count the same token, the older delegation has precedence."""


class EndedDelegation(Row, table=True):
    """A delegation that the last read did not name; its age is kept, because one read may be wrong."""

    chain: str = Field(primary_key=True)
    delegate: str = Field(primary_key=True)
    vault: str = Field(primary_key=True)
    contract: str = Field(primary_key=True)
    token_id: str = Field(primary_key=True)
    first_seen_at: datetime = moment()
    ended_at: datetime = moment()


class DelegationRead(Row, table=True):
    """The last read of a wallet's delegations: when, at which block of which node; `fault` is why they are unknown."""

    chain: str = Field(primary_key=True)
    delegate: str = Field(primary_key=True)
    block: int = Field(sa_type=BigInteger)
    endpoint: int
    read_at: datetime | None = maybe_moment()
    more: bool = False
    """Whether the wallet has more delegations than are stored."""
    fault: str | None = None
