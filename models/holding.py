"""What is known of collections, tokens, and what wallets were seen to hold."""

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
    """One wallet's balance in one contract when it was last seen to change; an unknown never overwrites it.

    What was never more than nothing has no row: that it was read is known from the wallet's survey.
    """

    chain: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    contract: str = Field(primary_key=True)
    amount: Decimal = Field(sa_type=Numeric(78, 0))  # pyright: ignore[reportArgumentType]
    block: int = Field(sa_type=BigInteger)
    source: str
    observed_at: datetime = moment()


class Survey(SQLModel, table=True):
    """A bulk reading of one chain: which contracts told the balances of many wallets, at which block."""

    id: int | None = Field(default=None, primary_key=True)
    chain: str
    block: int = Field(sa_type=BigInteger)
    source: str
    observed_at: datetime = moment()
    contracts: list[str] = texts()


class Surveyed(SQLModel, table=True):
    """The newest survey of a server's members that a wallet was in, with an answer from each of its contracts.

    At its block the wallet held what its observations say, and nothing where there is none.
    """

    chain: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    server_id: int = Field(primary_key=True)
    survey_id: int


class Tally(SQLModel, table=True):
    """The newest reading of how many tokens that fit one requirement a wallet held; `scope` says which requirement.

    Of a reading that was not complete, `at_least` is set: there may be more, and `reason` says why. Such a one never
    takes the place of a complete reading.
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
    """Tokens of a contract that are known to have come to a wallet, and which blocks each node searched for more.

    Hints where to look on the chain, not holdings. The contract is "any" for tokens of whatever collection, whose ids
    then read "contract:id". `searched` maps a node's place in the settings to a first and a last block, `gone` an id
    to the block at which the chain first said that it is not the wallet's any more.
    """

    __tablename__ = "token_trail"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    chain: str = Field(primary_key=True)
    contract: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    ids: list[str] = texts()
    searched: dict[str, Any] = document()
    gone: dict[str, Any] = document()
    updated_at: datetime = moment()
