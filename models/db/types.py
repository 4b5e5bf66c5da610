"""Column types that several tables share: aware times, JSON documents, text lists."""

from typing import Any

from sqlalchemy import DateTime, Text, func
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field

from models.db.clock import now


def moment(*, index: bool = False, in_database: bool = False) -> Any:
    """Return a required time column whose default is now; with `in_database`, the database has that default too."""
    told = {"server_default": func.now()} if in_database else {}
    return Field(default_factory=now, sa_type=DateTime(timezone=True), index=index, sa_column_kwargs=told)  # pyright: ignore[reportArgumentType]


def maybe_moment() -> Any:
    """Return an optional time column."""
    return Field(default=None, sa_type=DateTime(timezone=True))  # pyright: ignore[reportArgumentType]


def document() -> Any:
    """Return a column for a JSON object."""
    return Field(default_factory=dict, sa_type=JSONB)


def texts() -> Any:
    """Return a column for a list of short texts."""
    return Field(default_factory=list, sa_type=ARRAY(Text))  # pyright: ignore[reportArgumentType]
