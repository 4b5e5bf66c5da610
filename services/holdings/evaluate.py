"""A requirement held against a member's wallets: yes, no or unknown, with the evidence; pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateways.chains.token_sheet import TokenSheet
from gateways.evm.client import BalanceSheet
from services.collections.trait_match import TokenTraits
from services.core.answer import Answer
from services.holdings.delegation_shares import Delegated
from services.holdings.fetch_plan import family_of
from services.holdings.wallet_shares import (
    Answers,
    Place,
    WalletShare,
    doubts_of,
    part_of,
    part_of_vault,
    told_of,
    vaults_for,
)
from services.rules.expression import Requirement

__all__ = [
    "Answers",
    "Place",
    "Reading",
    "WalletShare",
    "addresses_on",
    "conclude",
    "denied",
    "in_part",
    "needed_of",
    "read",
    "unread",
]


@dataclass(frozen=True, slots=True)
class Reading:
    """One requirement held against one member's wallets: the answer and its evidence."""

    requirement: Requirement
    answer: Answer
    needed: int
    held: int | None
    block: int | None = None
    source: str | None = None
    observed_at: datetime | None = None
    reason: str | None = None
    parts: tuple[WalletShare, ...] = ()
    by_balance: bool = False
    """Whether the contract itself told how many there are, rather than one token after the other."""
    first: tuple[str, int] | None = None
    """The source and the block of the answer that this one confirms."""
    one_source: bool = False
    """Whether it depends on one source alone, because there is no other."""

    @property
    def alone(self) -> frozenset[tuple[str, str]]:
        """What is known from one source alone (a token and the source)."""
        return frozenset[tuple[str, str]]().union(*(part.alone for part in self.parts))

    @property
    def judged(self) -> frozenset[str]:
        """The tokens whose traits the answer was read from."""
        return frozenset[str]().union(*(part.judged for part in self.parts))

    def document(self) -> dict[str, Any]:
        """The evidence as the ledger and the log keep it; no address is in it."""
        return {
            "chain": self.requirement.chain, "contract": self.requirement.contract, "type": self.requirement.type,
            "answer": self.answer.value, "needed": self.needed, "held": None if self.held is None else str(self.held),
            "delegated": str(sum(part.amount for part in self.parts if part.through)),
            "block": self.block, "source": self.source, "reason": self.reason,
            "observedAt": self.observed_at.isoformat() if self.observed_at else None,
            **({"first": {"source": self.first[0], "block": self.first[1]}} if self.first else {}),
            **({"oneSource": True} if self.one_source else {}),
        }  # fmt: skip


def needed_of(leaf: Requirement) -> int:
    """How many fitting tokens satisfy a requirement; of named ids, or of anything at all, one does."""
    return leaf.min_tokens if leaf.type in {"basic", "trait"} else 1


def read(
    leaf: Requirement,
    wallets: Iterable[tuple[str, str]],
    answers: Answers | None,
    delegated: Delegated | None = None,
) -> Reading:
    """Hold a requirement against wallets (`(family, address)`); amounts add up, and an unknown part stays unknown.

    For a rule that counts it, `delegated` is what vaults let the member count besides.
    """
    addresses = addresses_on(leaf.chain, wallets)
    needed = needed_of(leaf)
    if not addresses:
        return Reading(leaf, Answer.NO, needed, 0, reason="no proved wallet on this chain")
    told = told_of(leaf, answers)
    if isinstance(told, str):
        return Reading(leaf, Answer.UNKNOWN, needed, None, reason=told)
    if answers is None or told is None:
        return Reading(leaf, Answer.UNKNOWN, needed, None, reason="not looked at")
    parts = (
        *(part_of(leaf, address, answers) for address in addresses),
        *(part_of_vault(leaf, vault, answers) for vault in vaults_for(leaf, delegated)),
        *doubts_of(leaf, delegated),
    )
    held = sum(part.amount for part in parts)
    answer, reason = conclude(parts, needed)
    return Reading(leaf, answer, needed, held, told.block, told.source, told.block_time, reason, parts,
                   isinstance(told, BalanceSheet))  # fmt: skip


def in_part(leaf: Requirement, answers: Answers) -> bool:
    """Whether what a chain answered about a requirement lacks something, so that another node may know more."""
    told = told_of(leaf, answers)
    if isinstance(told, BalanceSheet):
        return told.unknown(leaf.contract) > 0
    return isinstance(told, TokenSheet) and bool(told.unsure)


def conclude(parts: Iterable[WalletShare], needed: int) -> tuple[Answer, str | None]:
    """Yes as soon as enough is proved; no only when every wallet is known in full; and why it is unknown."""
    listed = tuple(parts)
    if sum(part.amount for part in listed) >= needed:
        return Answer.YES, None
    reasons = [part.reason for part in listed if part.reason is not None]
    return (Answer.UNKNOWN, reasons[0]) if reasons else (Answer.NO, None)


def addresses_on(chain: str, wallets: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The wallets that count on a chain, each once."""
    family = family_of(chain)
    return tuple(dict.fromkeys(address for kind, address in wallets if kind == family))


def unread(
    leaf: Requirement,
    wallets: Iterable[tuple[str, str]],
    answers: Answers | None,
    delegated: Delegated | None = None,
) -> Iterator[Place]:
    """The held tokens whose traits would have to be known to answer a requirement that cannot be answered yet."""
    if answers is not None and _answers(leaf, wallets, answers, delegated, Answer.UNKNOWN):
        for place in _held(leaf, wallets, answers, delegated):
            if not isinstance(answers.traits.get(place), TokenTraits):
                yield place


def denied(
    leaf: Requirement,
    wallets: Iterable[tuple[str, str]],
    answers: Answers | None,
    delegated: Delegated | None = None,
) -> Iterator[Place]:
    """The held tokens by whose traits the answer to a requirement is no."""
    if answers is not None and _answers(leaf, wallets, answers, delegated, Answer.NO):
        yield from _held(leaf, wallets, answers, delegated)


def _answers(
    leaf: Requirement,
    wallets: Iterable[tuple[str, str]],
    answers: Answers,
    delegated: Delegated | None,
    wanted: Answer,
) -> bool:
    by_token = leaf.type == "trait" and isinstance(answers.tokens.get((leaf.contract, ())), TokenSheet)
    return by_token and read(leaf, wallets, answers, delegated).answer is wanted


def _held(
    leaf: Requirement, wallets: Iterable[tuple[str, str]], answers: Answers, delegated: Delegated | None
) -> Iterator[Place]:
    sheet = answers.tokens[leaf.contract, ()]
    if isinstance(sheet, TokenSheet):
        of_vaults = [vault.cut(leaf.contract).of(sheet.of(vault.address)) for vault in vaults_for(leaf, delegated)]
        for held in (*map(sheet.of, addresses_on(leaf.chain, wallets)), *of_vaults):
            for token_id in held:
                yield leaf.chain, leaf.contract, token_id
