"""What is known about collections, tokens, and wallets' holdings."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, Numeric, UniqueConstraint
from sqlmodel import Field, SQLModel

from models.db.types import document, moment, texts


class Collection(SQLModel, table=True):
    """A contract on a chain, with the name people know it by."""

    __table_args__ = (UniqueConstraint("chain", "contract"),)  # pyright: ignore[reportUnannotatedClassAttribute]

    id: int | None = Field(default=None, primary_key=True)
    chain: str
    contract: str
    name: str
    slug: str | None = None
    standard: str | None = None
    source: str = ""
    updated_at: datetime = moment()


class Token(SQLModel, table=True):
    """One token of a collection and its traits."""

    collection_id: int = Field(primary_key=True, foreign_key="collection.id", ondelete="CASCADE")
    token_id: str = Field(primary_key=True)
    traits: dict[str, Any] = document()
    updated_at: datetime = moment()


class Observation(SQLModel, table=True):
    """One wallet's balance in one contract when it last changed; an unknown never overwrites it.

    A balance that was always zero has no row: the wallet's snapshot shows that it was read.
    """

    chain: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    contract: str = Field(primary_key=True)
    amount: Decimal = Field(sa_type=Numeric(78, 0))  # pyright: ignore[reportArgumentType]
    block: int = Field(sa_type=BigInteger)
    source: str
    observed_at: datetime = moment()


class Survey(SQLModel, table=True):
    """A balance snapshot of one chain: which contracts returned the balances of many wallets, at which block."""

    id: int | None = Field(default=None, primary_key=True)
    chain: str
    block: int = Field(sa_type=BigInteger)
    source: str
    observed_at: datetime = moment()
    contracts: list[str] = texts()


class Surveyed(SQLModel, table=True):
    """The newest balance snapshot of a server's member's wallet, with an answer from each of its contracts.

    At its block the wallet held what its observations say, and nothing where there is none.
    """

    chain: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    server_id: int = Field(primary_key=True)
    survey_id: int


class Tally(SQLModel, table=True):
    """The newest count of a wallet's tokens that match one requirement; `scope` says which requirement.

    An incomplete reading has `at_least` set: there may be more, and `reason` says why. It never replaces a complete
    one.
    """

    chain: str = Field(primary_key=True)
    contract: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    scope: str = Field(primary_key=True)
    amount: Decimal = Field(sa_type=Numeric(78, 0))  # pyright: ignore[reportArgumentType]
    at_least: bool = False
    reason: str | None = None
    block: int = Field(sa_type=BigInteger)
    source: str
    observed_at: datetime = moment()


class TokenTrail(SQLModel, table=True):
    """Token hints: tokens of a contract known to have reached a wallet, and the blocks that each node searched.

    Hints where to look on the chain, not holdings. For any collection the contract is "any", and ids are "contract:id".
    `searched` maps a node's place in the settings to a first and a last block, `gone` an id to the block at which the
    chain first said that it is no longer the wallet's.
    """

    __tablename__ = "token_trail"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    chain: str = Field(primary_key=True)
    contract: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    ids: list[str] = texts()
    searched: dict[str, Any] = document()
    gone: dict[str, Any] = document()
    updated_at: datetime = moment()
