"""Wallets, how each was proved, and the challenges that prove them."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Numeric, UniqueConstraint
from sqlmodel import Field, SQLModel

from models.types import document, maybe_moment, moment


class Wallet(SQLModel, table=True):
    """A proved wallet; an address has one holder at a time."""

    __table_args__ = (UniqueConstraint("family", "address"),)  # pyright: ignore[reportUnannotatedClassAttribute]

    id: int | None = Field(default=None, primary_key=True)
    user_id: int = Field(foreign_key="user.id", ondelete="CASCADE", index=True)
    family: str
    """`evm` (address in lower case) or `solana` (as given)."""
    address: str
    method: str
    """`opensea_bio` or `transaction`."""
    evidence: dict[str, Any] = document()
    created_at: datetime = moment()


class Challenge(SQLModel, table=True):
    """What a member was asked to show for an address: a code, and an amount of their own; used once."""

    id: int | None = Field(default=None, primary_key=True)
    user_id: int = Field(foreign_key="user.id", ondelete="CASCADE", index=True)
    family: str
    address: str = Field(index=True)
    code: str = Field(unique=True)
    amount_wei: Decimal = Field(sa_type=Numeric(78, 0))  # pyright: ignore[reportArgumentType]
    created_at: datetime = moment()
    expires_at: datetime = moment(index=True)
    used_at: datetime | None = maybe_moment()
