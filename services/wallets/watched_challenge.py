"""An open challenge as a check sees it: how far its account has been watched on each chain, and what was found."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gateways.evm.transactions import Transaction
from models import now
from services.wallets.transaction_check import Judgement, WantedTransaction

AT_ONCE = timedelta(seconds=30)
"""Watching that begins within this time after the challenge was made covers it from its first block."""


@dataclass(frozen=True, slots=True)
class Point:
    """How far one account has been watched on one chain; see models.Trail."""

    nonce: int
    block: int
    first_block: int
    contract: bool = False
    scanned: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True)
class SeenTransaction:
    """The transaction that may prove a wallet, and its confirmations."""

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
    bound: bool = False
    """Whether a contract account made it, which counts only on this chain."""
    part: bool = False
    """Whether it may contain operations of other accounts too."""


@dataclass(slots=True)
class OpenChallenge:
    """One challenge with the results of a check: points of trails, a transaction, a judgement.

    `unreachable` are chains that did not answer. `judged` is the judgement of `found`. `stored` is the row's `seen` and
    `note`.
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
    judging: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False, compare=False)
    """Held while a transaction is judged, because several chains may be checked at the same time."""

    def on(self, chain: str) -> "OpenChallenge":
        """Return a challenge of its own for a check of one chain, with nothing found yet."""
        points = {chain: self.points[chain]} if chain in self.points else {}
        return replace(self, points=points, unreachable=set(), candidates=[], judging=asyncio.Lock())

    @property
    def wanted(self) -> WantedTransaction:
        """What the challenge asks for."""
        first = {chain: point.first_block for chain, point in self.points.items()}
        return WantedTransaction(self.address, self.code, self.amount_wei, self.created_at, first)

    def begins_at(self, block: int) -> int:
        """Return the first block of a trail that begins now at `block`: 0 if the challenge is older than AT_ONCE."""
        return block if now() - self.created_at < AT_ONCE else 0
