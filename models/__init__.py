"""The stored state: tables, engine and transaction, migrations."""

from models.counts import Audience, HolderCount, Rollup, RollupDelta, VerifiedCount, VerifiedPerson, VerifiedStale
from models.db.clock import corrected, now
from models.db.database import DatabaseUrlMissing, connect, engine, limit_statements, reading, release, transaction, use
from models.db.lost_connections import WatchedConnection
from models.db.session import AsyncSession
from models.delegation import Delegation, DelegationRead, EndedDelegation
from models.event import Event
from models.gateway import BotProcessRow, GatewayLimit, GuildPicture, Identify, InteractionClaim, ShardRow
from models.grant import Breaker, Grant, GrantKey, RivalMove, RoleRefusal, Truce, Unanswered
from models.holding import (
    Census,
    CensusToken,
    CensusTurn,
    Collection,
    Observation,
    Reach,
    ReachCensus,
    ReachDay,
    Survey,
    Surveyed,
    Tally,
    Token,
    TokenTrail,
)
from models.provider import Alert, GuildRefusal, MarketLimit, NodeLimit, ProviderState, RateShare, Refusal
from models.queue import Counter, Cursor, Due, Quarantine, Schedule, Sighting, WatchedChange
from models.rule import AddressListRow, ContractMigration, ListedAddress, Rule, RuleRequest
from models.server import (
    Access,
    ApiToken,
    Member,
    MemberChoice,
    MoveCount,
    PayoutListing,
    RoleWatch,
    Server,
    ServerMove,
    Webhook,
    WebhookDelivery,
)
from models.user import Farewell, Notice, Session, SignIn, User
from models.wallet import Challenge, Handover, SpentTransaction, Trail, Wallet

__all__ = [
    "Access", "AddressListRow", "Alert", "ApiToken", "AsyncSession", "Audience", "BotProcessRow", "Breaker", "Census",
    "CensusToken", "CensusTurn", "Challenge", "Collection", "ContractMigration", "Counter", "Cursor",
    "DatabaseUrlMissing", "Delegation", "DelegationRead", "Due", "EndedDelegation", "Event", "Farewell", "GatewayLimit",
    "Grant", "GrantKey", "GuildPicture", "GuildRefusal", "Handover", "HolderCount", "Identify", "InteractionClaim",
    "ListedAddress", "MarketLimit", "Member", "MemberChoice", "MoveCount", "NodeLimit", "Notice", "Observation",
    "PayoutListing", "ProviderState", "Quarantine", "RateShare", "Reach", "ReachCensus", "ReachDay", "Refusal",
    "RivalMove", "RoleRefusal", "RoleWatch", "Rollup", "RollupDelta", "Rule", "RuleRequest", "Schedule", "Server",
    "ServerMove", "Session", "ShardRow", "Sighting", "SignIn", "SpentTransaction", "Survey", "Surveyed", "Tally",
    "Token", "TokenTrail", "Trail", "Truce", "Unanswered", "User", "VerifiedCount", "VerifiedPerson", "VerifiedStale",
    "Wallet", "WatchedChange", "WatchedConnection", "Webhook", "WebhookDelivery", "connect", "corrected", "engine",
    "limit_statements", "now", "reading", "release", "transaction", "use",
]  # fmt: skip
