"""The bot's connection to Discord's gateway: identifies, shards, processes, sessions, claimed interactions."""

from datetime import datetime

from sqlalchemy import BigInteger
from sqlmodel import Field

from models.db.row import Row
from models.db.types import maybe_moment, moment, texts


class Identify(Row, table=True):
    """A time at which the bot identifies to Discord's gateway; the row is kept for a day."""

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = moment(index=True)
    lane: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """The shard's number modulo `max_concurrency`: Discord accepts one identify in five seconds for each lane."""


class GatewayLimit(Row, table=True):
    """Discord's own count of the bot's identifies, as any process last read it; one row."""

    id: int = Field(default=1, primary_key=True)
    total: int
    remaining: int
    resets_at: datetime = moment()
    max_concurrency: int
    shards: int
    """The number of shards that Discord recommends."""
    read_at: datetime = moment()


class ShardRow(Row, table=True):
    """One of the bot's `shards` shards: the process that runs it, until when, and its session at Discord."""

    __tablename__ = "shard"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    shards: int = Field(primary_key=True)
    id: int = Field(primary_key=True)
    holder: str | None = None
    held_until: datetime | None = maybe_moment()
    session_id: str | None = None
    """Useless without the bot's token, which is not stored."""
    sequence: int | None = Field(default=None, sa_type=BigInteger)
    """The last event up to which everything is in the database."""
    url: str | None = None
    intents: int | None = Field(default=None, sa_type=BigInteger)
    bot: str | None = None
    """A digest of the token with which the session began."""
    application_id: str | None = None
    unavailable: list[str] = texts()
    """The guilds that were unavailable."""


class BotProcessRow(Row, table=True):
    """A running process of the bot, and why it is not connected (`down`; None if it is)."""

    __tablename__ = "bot_process"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    name: str = Field(primary_key=True)
    part: str
    """The process's setting BOT_SHARDS."""
    shards: int
    seen_at: datetime = moment()
    down: str | None = None


class GuildPicture(Row, table=True):
    """The bot's last snapshot of a guild, with its roles and the bot as its member, as JSON."""

    guild_id: str = Field(primary_key=True)
    data: str


class InteractionClaim(Row, table=True):
    """An interaction that one process answers, so that no other does."""

    id: str = Field(primary_key=True)
    at: datetime = moment(index=True)
