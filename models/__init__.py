"""What the product knows: tables, engine and transaction, migrations."""

from models.database import AsyncSession, DatabaseUrlMissing, engine, libpq_url, psycopg_url, transaction, use
from models.event import Event, Notice
from models.grant import Breaker, Grant
from models.holding import Collection, Observation, Token
from models.rule import Rule
from models.server import Access, Member, MemberChoice, Server
from models.types import now
from models.user import Session, SignIn, User
from models.wallet import Challenge, Wallet
from models.work import Cursor, Due, Schedule

__all__ = [
    "Access", "AsyncSession", "Breaker", "Challenge", "Collection", "Cursor", "DatabaseUrlMissing", "Due", "Event",
    "Grant",
    "Member", "MemberChoice", "Notice", "Observation", "Rule", "Schedule", "Server", "Session", "SignIn", "Token",
    "User", "Wallet", "engine", "libpq_url", "now", "psycopg_url", "transaction", "use",
]  # fmt: skip
