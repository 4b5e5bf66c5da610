"""Work to do: the queue, schedules, cursors, and limits shared by processes."""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import BigInteger, DateTime, Index, text
from sqlmodel import Field, SQLModel

from models.db.types import maybe_moment, moment, texts


class Due(SQLModel, table=True):
    """A queued member; marking twice keeps one row with the greater urgency."""

    __table_args__ = (Index("ix_due_turn", text("priority DESC"), "turn", "due_at"),)  # pyright: ignore[reportUnannotatedClassAttribute]

    kind: str = Field(primary_key=True)
    """`member`: every role of one member of one server."""
    key: str = Field(primary_key=True)
    """For `member`: `<server id>:<Discord id>`."""
    priority: int = 0
    turn: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """Servers take turns by it: it counts up over the members of a server that were marked together."""
    due_at: datetime = moment()
    version: int = Field(default=1, sa_type=BigInteger)
    seen: int = Field(default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    """How many of the marks counted in `version` were only sightings of transfers."""
    overtaken: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """How many reconciles in a row would have taken a role but were overtaken by sightings."""
    attempts: int = 0
    claimed_until: datetime | None = maybe_moment()
    claimed_by: str | None = None
    reason: str | None = None
    """Why the last reconcile could not answer everything."""
    request_id: str | None = None
    """The request that last marked the member, if any: every process's log names it."""


class Schedule(SQLModel, table=True):
    """One scheduled job; the row decides which process runs it."""

    name: str = Field(primary_key=True)
    next_at: datetime = moment()
    started_at: datetime | None = maybe_moment()
    finished_at: datetime | None = maybe_moment()
    done: int = 0
    total: int = 0


class Cursor(SQLModel, table=True):
    """How far a chain has been followed, and the lease of its follower."""

    chain: str = Field(primary_key=True)
    """The chain's key for contracts; `<chain>:wallets` for members' wallets."""
    block: int = Field(sa_type=BigInteger)
    block_hash: str = ""
    head: int = Field(default=0, sa_type=BigInteger)
    """The chain's newest block at the last poll."""
    fault: str | None = None
    """Why the last poll failed."""
    owner: str | None = None
    owned_until: datetime | None = maybe_moment()
    updated_at: datetime = moment()
    slices: int = Field(default=1, sa_column_kwargs={"server_default": "1"})
    """Number of polls in which the addresses are read, if there are too many for one."""


class Quarantine(SQLModel, table=True):
    """An address with more logs in a block than a node returns, and until when it is not followed.

    It is followed again from `until` on; `ended_at` is set when the first poll with it is stored.
    """

    chain: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    """`contracts` or `wallets`: how the logs are requested."""
    address: str = Field(primary_key=True)
    reason: str
    times: int = 1
    """How often in a row; each time it lasts longer."""
    since: datetime = moment()
    until: datetime = Field(sa_type=DateTime(timezone=True))  # pyright: ignore[reportArgumentType, reportCallIssue]
    ended_at: datetime | None = maybe_moment()


class Sighting(SQLModel, table=True):
    """The newest block in which a token moved to or from a wallet: answers from before it are useless."""

    chain: str = Field(primary_key=True)
    address: str = Field(primary_key=True)
    block: int = Field(sa_type=BigInteger)
    seen_at: datetime = moment()


class Counter(SQLModel, table=True):
    """A counter for monitors, over all processes and since the database was made."""

    name: str = Field(primary_key=True)
    label: str = Field(primary_key=True)
    outcome: str = Field(primary_key=True)
    total: int = Field(default=0, sa_type=BigInteger)


class Refusal(SQLModel, table=True):
    """How many requests of all processes Discord refused in one minute."""

    minute: datetime = Field(primary_key=True, sa_type=DateTime(timezone=True))  # pyright: ignore[reportArgumentType, reportCallIssue]
    count: int


class GuildRefusal(SQLModel, table=True):
    """How many requests about one guild Discord refused in the present window, and whether the guild is paused."""

    __tablename__ = "guild_refusal"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    guild_id: str = Field(primary_key=True)
    began_at: datetime = moment()
    count: int
    rests: int = 0
    """How often it was paused; the pauses grow with it."""
    rests_until: datetime | None = maybe_moment()


class RateShare(SQLModel, table=True):
    """One process's share of the requests a second that Discord allows the bot; it expires with a silent process."""

    __tablename__ = "rate_share"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    process: str = Field(primary_key=True)
    kind: str
    """`web`, `bot` or `jobs`."""
    wanted: float
    """Requests a second that it lately had to send."""
    share: float
    """Requests a second that it may send."""
    seen_at: datetime = moment()
    paused_until: datetime | None = maybe_moment()
    """Until when an answer to it asked the bot to send nothing at all."""


class Identify(SQLModel, table=True):
    """A time at which the bot identifies to Discord's gateway; kept for a day."""

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = moment(index=True)
    lane: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """The shard's number modulo `max_concurrency`: Discord accepts one in five seconds of each."""


class GatewayLimit(SQLModel, table=True):
    """Discord's own count of the bot's identifies, as any process last read it; one row."""

    __tablename__ = "gateway_limit"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    id: int = Field(default=1, primary_key=True)
    total: int
    remaining: int
    resets_at: datetime = moment()
    max_concurrency: int
    shards: int
    """How many shards Discord recommends."""
    read_at: datetime = moment()


class ShardRow(SQLModel, table=True):
    """A shard of the bot, of `shards` together: the process that runs it until when, and its session at Discord."""

    __tablename__ = "shard"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    shards: int = Field(primary_key=True)
    id: int = Field(primary_key=True)
    holder: str | None = None
    held_until: datetime | None = maybe_moment()
    session_id: str | None = None
    """Useless without the bot's token, which is not stored."""
    sequence: int | None = Field(default=None, sa_type=BigInteger)
    """Everything up to this event is in the database."""
    url: str | None = None
    intents: int | None = Field(default=None, sa_type=BigInteger)
    bot: str | None = None
    """A digest of the token with which the session began."""
    application_id: str | None = None
    unavailable: list[str] = texts()
    """Guilds that were unavailable."""


class BotProcessRow(SQLModel, table=True):
    """A process of the bot that lives, and why it is not connected; None if it is."""

    __tablename__ = "bot_process"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    name: str = Field(primary_key=True)
    part: str
    """BOT_SHARDS, as the process has it."""
    shards: int
    seen_at: datetime = moment()
    down: str | None = None


class WebhookDelivery(SQLModel, table=True):
    """An event to post to a server's webhook; its body is made when it is sent."""

    __tablename__ = "webhook_delivery"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]
    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_webhook_delivery_waiting", "server_id", "id", postgresql_where=text("state = 'waiting'")),
        Index("ix_webhook_delivery_server", "server_id", "id"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    uuid: UUID = Field(default_factory=uuid4)
    """Its receiver discards repeats by it."""
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE")
    event_id: int | None = Field(default=None, sa_type=BigInteger)
    """The line of the log; None for a test."""
    event: str
    state: str = "waiting"
    """`waiting`, `delivered`, `failed` after a day, or `dropped`: it may no longer be sent."""
    attempts: int = 0
    next_at: datetime = moment()
    fault: str | None = None
    """Why the last attempt failed."""
    created_at: datetime = moment(index=True)
    done_at: datetime | None = maybe_moment()


class GuildPicture(SQLModel, table=True):
    """A guild as the bot last knew it: its roles and the bot as its member, as JSON."""

    __tablename__ = "guild_picture"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    guild_id: str = Field(primary_key=True)
    data: str


class InteractionClaim(SQLModel, table=True):
    """An interaction that some process answers, so that no other does."""

    __tablename__ = "interaction_claim"  # pyright: ignore[reportAssignmentType, reportUnannotatedClassAttribute]

    id: str = Field(primary_key=True)
    at: datetime = moment(index=True)
