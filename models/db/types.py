"""Column shapes that several tables share: aware times, JSON documents, text lists."""

from typing import Any

from sqlalchemy import DateTime, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field

from models.db.clock import now


def moment(*, index: bool = False) -> Any:
    """A required time that defaults to the row's making."""
    return Field(default_factory=now, sa_type=DateTime(timezone=True), index=index)  # pyright: ignore[reportArgumentType]


def maybe_moment(*, index: bool = False) -> Any:
    """A time that may still be to come."""
    return Field(default=None, sa_type=DateTime(timezone=True), index=index)  # pyright: ignore[reportArgumentType]


def document() -> Any:
    """A JSON object."""
    return Field(default_factory=dict, sa_type=JSONB)


def texts() -> Any:
    """A list of short texts."""
    return Field(default_factory=list, sa_type=ARRAY(Text))  # pyright: ignore[reportArgumentType]
