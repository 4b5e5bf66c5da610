"""A requirement held against a member's wallets: yes, no or unknown, with the evidence; pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from gateways.chains import BalanceSheet
from gateways.token_sheet import TokenSheet, token_ids
from services.expressions import Answer, Requirement
from services.trait_match import TokenTraits, matches
from services.wants import SOLANA, TokenWant, family_of

Place = tuple[str, str, str]
"""Chain, contract and token id."""


@dataclass(slots=True)
class Answers:
    """What a chain answered about a server's wallets, or why it did not (a text in the place of a sheet)."""

    owners: frozenset[str] = frozenset()
    """The wallets that were asked about; of any other nothing is known."""
    sheet: BalanceSheet | None = None
    fault: str | None = None
    tokens: dict[TokenWant, TokenSheet | str] = field(default_factory=dict[TokenWant, TokenSheet | str])
    anything: TokenSheet | str | None = None
    traits: dict[Place, TokenTraits | str] = field(default_factory=dict[Place, TokenTraits | str])
    standards: dict[str, str] = field(default_factory=dict[str, str])
    """What contracts turned out to be."""


@dataclass(frozen=True, slots=True)
class Part:
    """How many fitting tokens one wallet holds; there may be more, for the `reason`, unless that is None."""

    address: str
    amount: int
    reason: str | None = None


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
    parts: tuple[Part, ...] = ()
    by_balance: bool = False
    """Whether the contract itself told how many there are, rather than one token after the other."""

    def document(self) -> dict[str, Any]:
        """The evidence as the ledger and the log keep it; no address is in it."""
        return {
            "chain": self.requirement.chain, "contract": self.requirement.contract, "type": self.requirement.type,
            "answer": self.answer.value, "needed": self.needed, "held": None if self.held is None else str(self.held),
            "block": self.block, "source": self.source, "reason": self.reason,
            "observedAt": self.observed_at.isoformat() if self.observed_at else None,
        }  # fmt: skip


def needed_of(leaf: Requirement) -> int:
    """How many fitting tokens satisfy a requirement; of named ids, or of anything at all, one does."""
    return leaf.min_tokens if leaf.type in {"basic", "trait"} else 1


def read(leaf: Requirement, wallets: Iterable[tuple[str, str]], answers: Answers | None) -> Reading:
    """Hold a requirement against wallets (`(family, address)`); amounts add up, and an unknown part stays unknown."""
    addresses = addresses_on(leaf.chain, wallets)
    needed = needed_of(leaf)
    if not addresses:
        return Reading(leaf, Answer.NO, needed, 0, reason="no proved wallet on this chain")
    told = _told(leaf, answers)
    if isinstance(told, str):
        return Reading(leaf, Answer.UNKNOWN, needed, None, reason=told)
    if answers is None or told is None:
        return Reading(leaf, Answer.UNKNOWN, needed, None, reason="not looked at")
    parts = tuple(_part(leaf, address, answers) for address in addresses)
    held = sum(part.amount for part in parts)
    answer, reason = conclude(parts, needed)
    return Reading(leaf, answer, needed, held, told.block, told.source, told.block_time, reason, parts,
                   isinstance(told, BalanceSheet))  # fmt: skip


def conclude(parts: Iterable[Part], needed: int) -> tuple[Answer, str | None]:
    """Yes as soon as enough is proved; no only when every wallet is known in full; and why it is unknown."""
    listed = tuple(parts)
    if sum(part.amount for part in listed) >= needed:
        return Answer.YES, None
    reasons = [part.reason for part in listed if part.reason is not None]
    return (Answer.UNKNOWN, reasons[0]) if reasons else (Answer.NO, None)


def agree(first: Reading, second: Reading) -> Reading:
    """Both readings as one: where they disagree, nothing is known."""
    if first.answer is second.answer:
        return second
    return Reading(
        first.requirement, Answer.UNKNOWN, first.needed, None, second.block, second.source, second.observed_at,
        second.reason or "two readings disagree",
    )  # fmt: skip


def addresses_on(chain: str, wallets: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The wallets that count on a chain, each once."""
    family = family_of(chain)
    return tuple(dict.fromkeys(address for kind, address in wallets if kind == family))


def unread(leaf: Requirement, wallets: Iterable[tuple[str, str]], answers: Answers | None) -> Iterator[Place]:
    """The held tokens whose traits would have to be known to answer a requirement that cannot be answered yet."""
    if leaf.type != "trait" or answers is None:
        return
    sheet = answers.tokens.get((leaf.contract, ()))
    if not isinstance(sheet, TokenSheet) or read(leaf, wallets, answers).answer is not Answer.UNKNOWN:
        return
    for address in addresses_on(leaf.chain, wallets):
        for token_id in sheet.of(address):
            place = (leaf.chain, leaf.contract, token_id)
            if not isinstance(answers.traits.get(place), TokenTraits):
                yield place


def _told(leaf: Requirement, answers: Answers | None) -> BalanceSheet | TokenSheet | str | None:
    """The sheet that answers a requirement, or why there is none."""
    if answers is None:
        return None
    if leaf.type == "any_nft":
        return answers.anything
    if leaf.type == "basic":
        tokens = answers.tokens.get((leaf.contract, ()))
        if tokens is not None and (answers.sheet is None or _says_nothing(answers.sheet, leaf.contract)):
            return tokens
        return answers.sheet or answers.fault
    return answers.tokens.get((leaf.contract, leaf.token_ids if leaf.type == "token_id" else ()))


def _says_nothing(sheet: BalanceSheet, contract: str) -> bool:
    """Whether a contract answered for no wallet at all: it has no balances to tell, or was not asked."""
    return sheet.unknown(contract) == len(sheet.owners) // 20


def _part(leaf: Requirement, address: str, answers: Answers) -> Part:
    told = _told(leaf, answers)
    if address not in answers.owners:
        return Part(address, 0, "not looked at")
    if isinstance(told, BalanceSheet):
        amount = told.amount(leaf.contract, address)
        return Part(address, amount or 0, None if amount is not None else "the contract gave no answer")
    if not isinstance(told, TokenSheet):
        return Part(address, 0, "not looked at")
    held, reason = told.of(address), told.unsure.get(address)
    if leaf.type == "any_nft":
        return _anything(address, sum(held.values()), reason, answers)
    if leaf.type == "token_id":
        wanted = _wanted(leaf)
        return Part(address, sum(amount for one, amount in held.items() if wanted(one)), reason)
    if leaf.type == "trait":
        return _with_trait(leaf, address, held, reason, answers)
    return Part(address, sum(held.values()), reason)


@lru_cache(maxsize=1_000)
def _wanted(leaf: Requirement) -> Callable[[str], bool]:
    """Whether a token id is one of the requirement's: by number, on Solana by the mint address itself."""
    if leaf.chain == SOLANA:
        return frozenset(leaf.token_ids).__contains__
    ids = token_ids(leaf.token_ids)
    return lambda one: int(one) in ids


def _with_trait(leaf: Requirement, address: str, held: Mapping[str, int], reason: str | None, answers: Answers) -> Part:
    kind, value = leaf.trait or ("", "")
    fitting = 0
    for token_id, amount in held.items():
        traits = answers.traits.get((leaf.chain, leaf.contract, token_id))
        answer = matches(traits if isinstance(traits, TokenTraits) else None, kind, value)
        if answer is Answer.YES:
            fitting += amount
        elif answer is Answer.UNKNOWN and reason is None:
            why = traits if isinstance(traits, str) else "not all of its traits could be read"
            reason = f"token {token_id[:44]}: {why}"
    return Part(address, fitting, reason)


def _anything(address: str, found: int, reason: str | None, answers: Answers) -> Part:
    """Anything that was found, and the balances of collections that tell for every wallet."""
    sheet = answers.sheet
    if sheet is not None and not found:
        asked = (f"0x{sheet.contracts[at : at + 20].hex()}" for at in range(0, len(sheet.contracts), 20))
        # A collection that answers for nobody says nothing about anybody; it must not spoil the answer for all others.
        amounts = [sheet.amount(contract, address) for contract in asked if not _says_nothing(sheet, contract)]
        found = sum(amount for amount in amounts if amount)
        if reason is None and any(amount is None for amount in amounts):
            reason = "a collection gave no answer"
    elif sheet is None and answers.fault is not None and reason is None:
        reason = answers.fault
    return Part(address, found, reason)
