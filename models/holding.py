"""Collections, tokens, wallets' holdings, and the counts of holders."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, Index, Numeric, SmallInteger, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field

from models.db.row import Row
from models.db.types import document, maybe_moment, moment, texts


class Collection(Row, table=True):
    """A contract on a chain, with the name by which people know it."""

    __table_args__ = (UniqueConstraint("chain", "contract"),)  # pyright: ignore[reportUnannotatedClassAttribute]

    id: int | None = Field(default=None, primary_key=True)
    chain: str
    contract: str
    name: str
    slug: str | None = None
    standard: str | None = None
    source: str = ""
    updated_at: datetime = moment()


class Token(Row, table=True):
    """One token of a collection and its traits."""

    collection_id: int = Field(primary_key=True, foreign_key="collection.id", ondelete="CASCADE")
    token_id: str = Field(primary_key=True)
    traits: dict[str, Any] = document()
    updated_at: datetime = moment()


class Observation(Row, table=True):
    """One wallet's balance in one contract when it last changed; an unknown answer never overwrites it.

    A balance that was always zero has no row; the wallet's snapshot shows that it was read.
    """

    chain: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    contract: str = Field(primary_key=True)
    amount: Decimal = Field(sa_type=Numeric(78, 0))  # pyright: ignore[reportArgumentType]
    block: int = Field(sa_type=BigInteger)
    source: str
    observed_at: datetime = moment()


class Survey(Row, table=True):
    """A balance snapshot of one chain: the contracts that returned the balances of many wallets, and the block."""

    id: int | None = Field(default=None, primary_key=True)
    chain: str
    block: int = Field(sa_type=BigInteger)
    source: str
    observed_at: datetime = moment()
    contracts: list[str] = texts()


class Surveyed(Row, table=True):
    """The newest balance snapshot of a server's member's wallet, with an answer from each of its contracts.

    At its block the wallet held the amounts in its observations, and nothing in contracts without an observation.
    """

    chain: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    server_id: int = Field(primary_key=True)
    survey_id: int


class Tally(Row, table=True):
    """The newest count of a wallet's tokens that match one requirement, which `scope` identifies.

    An incomplete count has `at_least` set: there may be more tokens, and `reason` says why. It never replaces a
    complete count.
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


class TokenTrail(Row, table=True):
    """Token hints: tokens of a contract known to have reached a wallet, and the blocks that each node searched.

    They are hints of what to check on the chain, not holdings. For any collection, the contract is "any" and ids are
    "contract:id". `searched` maps a node's mark (`Node.mark`) to a first and a last block. `gone` maps an id to the
    block at which the chain first showed that the token no longer belongs to the wallet.
    """

    chain: str = Field(primary_key=True)
    contract: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    ids: list[str] = texts()
    searched: dict[str, Any] = document()
    gone: dict[str, Any] = document()
    updated_at: datetime = moment()


class Census(Row, table=True):
    """The count of one collection's holders, and its progress. All servers share it."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        UniqueConstraint("chain", "contract"),
        Index("ix_census_open", "next_at", postgresql_where=text("state = 'counting'")),
    )

    id: int | None = Field(default=None, primary_key=True)
    chain: str
    contract: str
    state: str = "counting"
    """`counting`, `done` or `failed`."""
    block: int = Field(default=-1, sa_type=BigInteger)
    """The transfers up to this settled block are in the rows of part 0; -1 before the first block."""
    block_hash: str = ""
    """The hash of the block at which the last whole count ended; empty before."""
    known: int | None = Field(default=None, sa_type=BigInteger)
    """A block with a transfer. If a node lists no transfer there, its other empty answers are not believed either."""
    target: int | None = Field(default=None, sa_type=BigInteger)
    """The settled block at which this count ends; None until it begins."""
    head: int | None = Field(default=None, sa_type=BigInteger)
    """The newest block (on Solana the slot) that the last whole count includes."""
    after: str | None = None
    """On Solana, the asset after which the next page begins."""
    again: bool = False
    """On Solana, whether the list is read for the second time."""
    moves: int = Field(default=0, sa_type=BigInteger)
    """The number of token moves read; on Solana, the number of assets read in this pass over the list."""
    tokens: int = Field(default=0, sa_type=BigInteger)
    """The number of rows in part 0."""
    faults: int = 0
    """Failures since the count last advanced."""
    reason: str = ""
    """Why the count failed, or a note to show beside its number, as `locales/stored_texts.py` stores it."""
    holder: str | None = None
    """The process that counts right now."""
    held_until: datetime | None = maybe_moment()
    next_at: datetime = moment()
    """When the count may be advanced next."""
    wanted_at: datetime = moment()
    counted_at: datetime | None = maybe_moment()
    """When the last whole count ended."""
    moved_at: datetime | None = maybe_moment()
    """When a follower last saw a transfer in the collection; written at most every few minutes."""


class CensusToken(Row, table=True):
    """The amount of one token that belongs to one address.

    Part 0 has the amounts at the settled block, part 1 the changes by later blocks, and part 2 the second reading of a
    list on Solana, where a token is its mint as a number.
    """

    census_id: int = Field(primary_key=True, foreign_key="census.id", ondelete="CASCADE")
    part: int = Field(primary_key=True, sa_type=SmallInteger)
    owner: str = Field(primary_key=True)
    token: Decimal = Field(primary_key=True, sa_type=Numeric(78, 0))  # pyright: ignore[reportArgumentType]
    amount: Decimal = Field(sa_type=Numeric)


class CensusTurn(Row, table=True):
    """When a server's counts were last advanced, so that servers take turns."""

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    at: datetime = moment()


class Reach(Row, table=True):
    """The number of addresses that meet a rule's conditions, and of those that are verified in its server."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_reach_server", "server_id", "digest", "created_at"),
        Index("ix_reach_open", "id", postgresql_where=text("state = 'counting'")),
    )

    id: int | None = Field(default=None, primary_key=True)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE")
    digest: str
    """A digest of the conditions."""
    expression: dict[str, Any] = document()
    state: str = "counting"
    """`counting`, `done` or `failed`."""
    reason: str = ""
    holders: int | None = Field(default=None, sa_type=BigInteger)
    verified: int | None = Field(default=None, sa_type=BigInteger)
    chains: list[dict[str, Any]] = Field(default_factory=list, sa_type=JSONB)
    """For each chain: its key, the number of addresses that meet a condition on it, and the block of the count."""
    daily: bool = False
    """Whether it is the daily count of a rule, which no admin asked for."""
    created_at: datetime = moment()
    ended_at: datetime | None = maybe_moment()


class ReachCensus(Row, table=True):
    """A census that a rule's numbers need."""

    reach_id: int = Field(primary_key=True, foreign_key="reach.id", ondelete="CASCADE")
    census_id: int = Field(primary_key=True, foreign_key="census.id", ondelete="CASCADE", index=True)


class ReachDay(Row, table=True):
    """A rule's numbers on one day (in UTC), or the reason why there are none."""

    rule_id: int = Field(primary_key=True, foreign_key="rule.id", ondelete="CASCADE")
    day: date = Field(primary_key=True)
    holders: int | None = Field(default=None, sa_type=BigInteger)
    verified: int | None = Field(default=None, sa_type=BigInteger)
    chains: list[dict[str, Any]] = Field(default_factory=list, sa_type=JSONB)
    reason: str = ""
    digest: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """A digest of the counted conditions; the rule may have other conditions by now."""
    at: datetime = moment()
