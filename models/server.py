"""Discord servers, their members, the people who may run them, and deliveries to their programs."""

from datetime import date, datetime
from uuid import UUID, uuid4

from sqlalchemy import BigInteger, Index, false, text
from sqlmodel import Field

from models.db.row import Row
from models.db.types import maybe_moment, moment, texts


class Server(Row, table=True):
    """A known Discord guild: the bot is or was in it, or an admin added it with the form."""

    __table_args__ = (Index("ix_server_list_wanted", "id", postgresql_where=text("list_wanted")),)  # pyright: ignore[reportUnannotatedClassAttribute]

    id: int | None = Field(default=None, primary_key=True)
    discord_id: str = Field(unique=True)
    name: str
    icon: str | None = None
    """Discord's icon hash, or a URL on Discord's CDN that an admin gave."""
    description: str = ""
    owner_id: str | None = None
    bot_invited: bool = False
    bot_joined_at: datetime | None = maybe_moment()
    bot_left_at: datetime | None = maybe_moment()
    member_count: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """The number of members that Discord reported when the bot last connected."""
    bot_permissions: int | None = Field(default=None, sa_type=BigInteger)
    """The bot's permission bits in the whole guild, as the gateway last reported them."""
    bot_too_low: bool | None = None
    """Whether only the bot's own rank prevents it from giving any role here, by the same report; None before the first
    report."""
    verify_channel_id: str | None = None
    """The verification channel that we made. `panel_message_id` is the message with the buttons in it."""
    panel_message_id: str | None = None
    panel_title: str | None = None
    panel_text: str | None = None
    panel_button: str | None = None
    panel_color: str | None = None
    """An admin's changes to the panel, the colour as `#RRGGBB`; None for the default."""
    language: str = Field(default="en", sa_column_kwargs={"server_default": "en"})
    """The language of the panel and of alerts, as a BCP 47 tag."""
    log_channel_id: str | None = None
    """The channel for alerts to the admins, if they chose one."""
    protected_members: list[str] = texts()
    """Discord ids of members from whom no role is taken."""
    protected_roles: list[str] = texts()
    """Roles that are never taken from anybody."""
    steps_hidden: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    """Whether an admin has hidden the checklist of first steps."""
    list_wanted: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    """Whether the list of its members has to be read, because a read has begun and not ended."""
    created_at: datetime = moment()


class RoleWatch(Row, table=True):
    """A role that a rule, a move or a preview concerns; all its holders are stored.

    Triggers add the roles of rules and moves. Housekeeping deletes rows that are no longer needed.
    """

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_role_watch_unlisted", "server_id", postgresql_where=text("listed_at IS NULL")),
    )

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    role_id: str = Field(primary_key=True)
    at: datetime = moment(in_database=True)
    listed_at: datetime | None = maybe_moment()
    """When all holders had been stored; None until then."""


class Access(Row, table=True):
    """A person's right to run a server, as last read from Discord; every change is still checked live."""

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    discord_id: str = Field(primary_key=True, index=True)
    owner: bool = False
    checked_at: datetime = moment()


class Member(Row, table=True):
    """A known member of a guild, with the roles that the gateway last reported."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index(
            "ix_member_name", "server_id", text("lower(name)"), "discord_id",
            postgresql_include=["name"], postgresql_where=text("left_at IS NULL AND NOT bot"),
        ),
        Index("ix_member_unread", "server_id", postgresql_where=text("seen_at = to_timestamp(0)")),
    )  # fmt: skip

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    discord_id: str = Field(primary_key=True, index=True)
    name: str
    avatar: str | None = None
    """Discord's hash of the person's own picture."""
    roles: list[str] = texts()
    pending: bool = False
    """Whether membership screening is unfinished, so that Discord would refuse roles."""
    bot: bool = False
    """Whether it is a bot, ours or another: it can prove no wallet, so no rule ever concerns it."""
    left_at: datetime | None = maybe_moment()
    seen_at: datetime = moment()
    met_at: datetime | None = maybe_moment()
    """When the member first used the bot here."""


class MemberChoice(Row, table=True):
    """A member's choice for one server: whether their wallets count there, and whether admins may see them."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index(
            "ix_member_choice_payout", "payout_wallet_id", postgresql_where=text("payout_wallet_id IS NOT NULL")
        ),
    )  # fmt: skip

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    user_id: int = Field(primary_key=True, foreign_key="user.id", ondelete="CASCADE")
    use_wallets: bool = True
    share_wallets: bool = False
    payout_wallet_id: int | None = Field(default=None, foreign_key="wallet.id", ondelete="SET NULL")
    """The wallet that the member put on the server's airdrop list; None by default."""


class PayoutListing(Row, table=True):
    """A download of a server's airdrop list that contained a member's address."""

    __table_args__ = (Index("ix_payout_listing_user", "user_id", "server_id", "at"),)  # pyright: ignore[reportUnannotatedClassAttribute]

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE", index=True)
    user_id: int = Field(foreign_key="user.id", ondelete="CASCADE")
    actor: str = Field(index=True)
    """The Discord id of the admin who downloaded it, or the pseudonym of a forgotten one."""
    at: datetime = moment()


class ApiToken(Row, table=True):
    """A token with which an admin's program calls the API about one server; only its hash is stored."""

    id: int | None = Field(default=None, primary_key=True)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE", index=True)
    user_id: int = Field(foreign_key="user.id", ondelete="CASCADE", index=True)
    """The creator. A token never has more rights than its creator at the time of a call."""
    name: str
    hash: bytes = Field(unique=True)
    prefix: str
    """The token's first characters, by which people recognise it."""
    scopes: list[str] = texts()
    expires_at: datetime = moment()
    used_at: datetime | None = maybe_moment()
    created_at: datetime = moment()


class Webhook(Row, table=True):
    """The address of a program to which a server's events are posted, and the state of its deliveries."""

    server_id: int = Field(primary_key=True, foreign_key="server.id", ondelete="CASCADE")
    url: str
    events: list[str] = texts()
    secret: bytes
    """The encrypted secret that signs every delivery."""
    old_secret: bytes | None = None
    """The former secret, which also signs deliveries until `old_until`; behind it, earlier ones that still sign."""
    old_until: datetime | None = maybe_moment()
    next_at: datetime = moment()
    """Nothing is sent before this time."""
    served_at: datetime = moment()
    """The time of its last turn; the server that has waited longest is next."""
    claimed_until: datetime | None = maybe_moment()
    claimed_by: str | None = None
    failures: int = 0
    """Failed attempts in a row."""
    slow: bool = True
    """Whether the receiver's last answer took long, or nothing has been sent to it yet."""
    failing_since: datetime | None = maybe_moment()
    gave_up_at: datetime | None = maybe_moment()
    created_at: datetime = moment()


class ServerMove(Row, table=True):
    """A move of a server's roles to us; until an admin approves its end, no handed-over role is taken."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_server_move_open", "server_id", unique=True, postgresql_where=text("state = 'open'")),
        Index("ix_server_move_server", "server_id", "id"),
        Index("ix_server_move_messages", "messages_at", postgresql_where=text("messages_at IS NOT NULL")),
    )

    id: int | None = Field(default=None, primary_key=True)
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE")
    state: str = "open"
    """`open` until an admin decides, then `approved` or `cancelled`; an approved one may become `undone`."""
    roles: list[str] = texts()
    """The roles that are handed over to us."""
    begins_at: datetime = moment()
    until: datetime = moment()
    """The time until which members are asked to verify a wallet; nothing is taken before an admin approves the end."""
    begun_at: datetime | None = maybe_moment()
    """When we began to judge the roles' holders."""
    approved_at: datetime | None = maybe_moment()
    ended_at: datetime | None = maybe_moment()
    """When the move was cancelled or undone."""
    channel_id: str | None = None
    """The channel in which an admin let us announce the move. `message_id` is the announcement."""
    message_id: str | None = None
    messages_at: datetime | None = maybe_moment()
    """When the panel and the announcement are next updated; None while they are current, until the move changes."""
    created_at: datetime = moment()


class MoveCount(Row, table=True):
    """The numbers of a role's holders by their state on one day (in UTC) of a move, as last counted on that day."""

    move_id: int = Field(primary_key=True, foreign_key="server_move.id", ondelete="CASCADE")
    role_id: str = Field(primary_key=True)
    day: date = Field(primary_key=True)
    earned: int
    """Holders with a wallet for whom a rule says yes."""
    unearned: int
    """Holders with a wallet for whom all rules say no."""
    unverified: int
    unknown: int
    at: datetime = moment()


class WebhookDelivery(Row, table=True):
    """An event to post to a server's webhook; its body is made when it is sent."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_webhook_delivery_waiting", "server_id", "id", postgresql_where=text("state = 'waiting'")),
        Index("ix_webhook_delivery_server", "server_id", "id"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    uuid: UUID = Field(default_factory=uuid4)
    """The id by which the receiver discards repeats."""
    server_id: int = Field(foreign_key="server.id", ondelete="CASCADE")
    event_id: int | None = Field(default=None, sa_type=BigInteger)
    """The line of the log; None for a test."""
    event: str
    state: str = "waiting"
    """`waiting`, `delivered`, `failed` (after a day), or `dropped` (it may no longer be sent)."""
    attempts: int = 0
    next_at: datetime = moment()
    fault: str | None = None
    """Why the last attempt failed."""
    created_at: datetime = moment(index=True)
    done_at: datetime | None = maybe_moment()
