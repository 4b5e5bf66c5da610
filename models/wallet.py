"""Wallets, how each was proved, and the challenges that prove them."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, Numeric, UniqueConstraint
from sqlmodel import Field

from models.db.row import Row
from models.db.types import document, maybe_moment, moment


class Wallet(Row, table=True):
    """A proved wallet. An address has one owner at a time; a contract account has one on each chain."""

    __table_args__ = (UniqueConstraint("family", "address", "chain"),)  # pyright: ignore[reportUnannotatedClassAttribute]

    id: int | None = Field(default=None, primary_key=True)
    user_id: int = Field(foreign_key="user.id", ondelete="CASCADE", index=True)
    family: str
    """`evm` (address in lower case) or `solana` (as given)."""
    address: str
    chain: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """The chain on which a contract account was proved, the only one on which it counts; empty for other wallets.

    Another contract can have the same address on another chain.
    """
    method: str
    """`opensea_bio` or `transaction`."""
    evidence: dict[str, Any] = document()
    created_at: datetime = moment()


class Challenge(Row, table=True):
    """The proof that a member has to show for an address: a code, and a unique amount. It works once.

    `seen` is the transaction that may prove it and waits for confirmations: chain, hash, block, nonce, confirmations,
    needed. `note` is a sentence about what was found instead, as `locales/stored_texts.py` stores it.
    """

    id: int | None = Field(default=None, primary_key=True)
    user_id: int = Field(foreign_key="user.id", ondelete="CASCADE", index=True)
    family: str
    address: str = Field(index=True)
    code: str = Field(unique=True)
    amount_wei: Decimal = Field(sa_type=Numeric(78, 0))  # pyright: ignore[reportArgumentType]
    created_at: datetime = moment()
    expires_at: datetime = moment(index=True)
    used_at: datetime | None = maybe_moment()
    screen_at: datetime | None = maybe_moment()
    """When a waiting screen last requested the result."""
    seen: dict[str, Any] = document()
    note: str = ""


class Trail(Row, table=True):
    """The progress of watching one account on a chain for a challenge: up to `block` it had sent `nonce` transactions.

    `first_block` is the block at which watching began, 0 if it began late. On Solana `block` is a slot and `nonce` is
    unused.
    """

    challenge_id: int = Field(primary_key=True, foreign_key="challenge.id", ondelete="CASCADE")
    chain: str = Field(primary_key=True)
    nonce: int = Field(sa_type=BigInteger)
    block: int = Field(sa_type=BigInteger)
    first_block: int = Field(sa_type=BigInteger)
    contract: bool = False
    """Whether the address is a smart contract, which cannot send to itself as other accounts do."""
    scanned: int = 0
    """Blocks read for it, on Solana memos judged, because a busy account is not watched forever."""
    lost: bool = False
    """Whether something was sent while we were offline, which can only be found by its hash."""


class Handover(Row, table=True):
    """A code that hands wallets over from one account to another of the same person; only its hash is stored."""

    id: int | None = Field(default=None, primary_key=True)
    user_id: int = Field(foreign_key="user.id", ondelete="CASCADE", unique=True)
    """The account that hands over."""
    wallet_id: int | None = Field(default=None, foreign_key="wallet.id", ondelete="CASCADE")
    """The wallet; None for all of them."""
    code_hash: bytes = Field(unique=True)
    created_at: datetime = moment()
    expires_at: datetime = moment(index=True)


class SpentTransaction(Row, table=True):
    """A transaction that has proved a wallet, so that it never proves another."""

    hash: str = Field(primary_key=True)
    chain: str
    spent_at: datetime = moment()
