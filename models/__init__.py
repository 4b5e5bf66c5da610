"""The stored state: tables, engine and transaction, migrations."""

from models.audience import Audience, VerifiedCount, VerifiedPerson, VerifiedStale
from models.db.clock import corrected, now
from models.db.database import (
    DatabaseUrlMissing,
    connect,
    engine,
    libpq_url,
    limit_statements,
    psycopg_url,
    reading,
    release,
    transaction,
    use,
)
from models.db.session import AsyncSession
from models.db.watched import WatchedConnection
from models.delegation import Delegation, DelegationRead
from models.event import Event, Notice
from models.grant import Breaker, Grant, RivalMove, RoleRefusal, Truce, Unanswered
from models.holding import Collection, Observation, Survey, Surveyed, Tally, Token, TokenTrail
from models.provider import Alert, MarketLimit, NodeLimit, ProviderState
from models.rollup import HolderCount, Rollup, RollupDelta
from models.rule import AddressListRow, ListedAddress, Rule
from models.server import Access, Member, MemberChoice, MoveCount, PayoutListing, Server, ServerMove
from models.user import Farewell, Session, SignIn, User
from models.wallet import Challenge, SpentTransaction, Trail, Wallet
from models.work import (
    Counter,
    Cursor,
    Due,
    GatewayLimit,
    GuildRefusal,
    Identify,
    Quarantine,
    RateShare,
    Refusal,
    Schedule,
    Sighting,
)

__all__ = [
    "Access",
    "AddressListRow",
    "Alert",
    "AsyncSession",
    "Audience",
    "Breaker",
    "Challenge",
    "Collection",
    "Counter",
    "Cursor",
    "DatabaseUrlMissing",
    "Delegation",
    "DelegationRead",
    "Due",
    "Event",
    "Farewell",
    "GatewayLimit",
    "Grant",
    "GuildRefusal",
    "HolderCount",
    "Identify",
    "ListedAddress",
    "MarketLimit",
    "Member",
    "MemberChoice",
    "MoveCount",
    "NodeLimit",
    "Notice",
    "Observation",
    "PayoutListing",
    "ProviderState",
    "Quarantine",
    "RateShare",
    "Refusal",
    "RivalMove",
    "RoleRefusal",
    "Rollup",
    "RollupDelta",
    "Rule",
    "Schedule",
    "Server",
    "ServerMove",
    "Session",
    "Sighting",
    "SignIn",
    "SpentTransaction",
    "Survey",
    "Surveyed",
    "Tally",
    "Token",
    "TokenTrail",
    "Trail",
    "Truce",
    "Unanswered",
    "User",
    "VerifiedCount",
    "VerifiedPerson",
    "VerifiedStale",
    "Wallet",
    "WatchedConnection",
    "connect",
    "corrected",
    "engine",
    "libpq_url",
    "limit_statements",
    "now",
    "psycopg_url",
    "reading",
    "release",
    "transaction",
    "use",
]  # fmt: skip
