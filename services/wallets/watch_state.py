"""What one look at a challenge knows beforehand, and where it leaves what it found."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gateways.evm.transactions import Transaction
from models import now
from services.wallets.transaction_check import Judgement, WantedTransaction

AT_ONCE = timedelta(seconds=30)
"""A trail that begins within this time begins with the challenge."""


@dataclass(frozen=True, slots=True)
class Point:
    """How far one account is followed on one chain; see models.Trail."""

    nonce: int
    block: int
    first_block: int
    contract: bool = False
    scanned: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True)
class SeenTransaction:
    """The transaction that may prove a wallet, and how far it is confirmed."""

    chain: str
    hash: str
    block: int
    nonce: int
    confirmations: int
    needed: int


@dataclass(frozen=True, slots=True)
class JudgedTransaction:
    """A transaction that was judged."""

    chain: str
    hash: str
    block: int | None


@dataclass(slots=True)
class OpenChallenge:
    """One challenge as a look knows it, and what the look found: points of trails, a transaction, a judgement.

    `unreachable` are chains that could not be asked. `judged` is the judgement of `found`. `stored` is what the row
    has as `seen` and `note`.
    """

    challenge_id: int
    user_id: int
    family: str
    address: str
    code: str
    amount_wei: int
    created_at: datetime
    points: dict[str, Point]
    seen: SeenTransaction | None = None
    note: str = ""
    stored: tuple[SeenTransaction | None, str] = (None, "")
    found: JudgedTransaction | None = None
    judged: Judgement | None = None
    unreachable: set[str] = field(default_factory=set)
    candidates: list[Transaction] = field(default_factory=list)

    @property
    def wanted(self) -> WantedTransaction:
        """What the challenge asks for."""
        first = {chain: point.first_block for chain, point in self.points.items()}
        return WantedTransaction(self.address, self.code, self.amount_wei, self.created_at, first)

    def begins_at(self, block: int) -> int:
        """The first block of a trail that begins now at `block`: 0 where that is not at once."""
        return block if now() - self.created_at < AT_ONCE else 0
