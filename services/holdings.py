"""What members hold: read in bulk, with the evidence, and never a guess: what could not be read is unknown."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from gateways import Gateways
from gateways.chains import BalanceSheet
from gateways.errors import ProviderError
from models import Observation
from models.database import AsyncSession
from services.expressions import Answer, Requirement

EVM = "evm"
SOLANA = "solana"


def family_of(chain: str) -> str:
    """Which kind of wallet counts on a chain."""
    return SOLANA if chain == SOLANA else EVM


@dataclass(frozen=True, slots=True)
class Question:
    """Whose balances in which contracts of one chain are wanted, and how new the answer has to be."""

    chain: str
    contracts: tuple[str, ...]
    owners: tuple[str, ...]
    not_before: int = 0


@dataclass(frozen=True, slots=True)
class Answers:
    """What a chain answered, or why it did not."""

    sheet: BalanceSheet | None
    fault: str | None = None


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

    def document(self) -> dict[str, Any]:
        """The evidence as the ledger and the log keep it; no address is in it."""
        return {
            "chain": self.requirement.chain, "contract": self.requirement.contract, "type": self.requirement.type,
            "answer": self.answer.value, "needed": self.needed, "held": None if self.held is None else str(self.held),
            "block": self.block, "source": self.source, "reason": self.reason,
            "observedAt": self.observed_at.isoformat() if self.observed_at else None,
        }  # fmt: skip


async def ask(outside: Gateways, question: Question, endpoint: int | None = None) -> Answers:
    """Read the balances; a fault of the provider becomes the reason why they are unknown."""
    try:
        sheet = await outside.chains.balances(
            question.chain,
            question.contracts,
            question.owners,
            endpoint=endpoint,
            not_before_block=question.not_before,
        )
    except ProviderError as fault:
        return Answers(None, str(fault))
    return Answers(sheet)


async def ask_all(outside: Gateways, questions: Sequence[Question]) -> list[Answers]:
    """Every question at once; one chain's fault touches only its own answers."""
    return list(await asyncio.gather(*(ask(outside, question) for question in questions)))


async def ask_again(outside: Gateways, question: Question, first: BalanceSheet) -> Answers:
    """A second, independent read: by another node where there is one, else by the same one at a later block."""
    others = [index for index in range(outside.chains.endpoints(question.chain)) if index != first.endpoint]
    if not others:
        again = await ask(outside, question, first.endpoint)
        if again.sheet is not None and again.sheet.block <= first.block:
            return Answers(None, "waiting for a later block to confirm")
        return again
    answers = Answers(None, "no second node")
    for index in others:
        answers = await ask(outside, question, index)
        if answers.sheet is not None:
            break
    return answers


def read(requirement: Requirement, wallets: Iterable[tuple[str, str]], answers: Answers | None) -> Reading:
    """Hold a requirement against wallets (`(family, address)`); amounts add up, and an unknown part stays unknown."""
    family = family_of(requirement.chain)
    addresses = [address for kind, address in wallets if kind == family]
    needed = requirement.min_tokens
    if not addresses:
        return Reading(requirement, Answer.NO, needed, 0, reason="no proved wallet on this chain")
    if answers is None or answers.sheet is None:
        reason = answers.fault if answers is not None and answers.fault else "not looked at"
        return Reading(requirement, Answer.UNKNOWN, needed, None, reason=reason)
    sheet = answers.sheet
    amounts = [sheet.amount(requirement.contract, address) for address in addresses]
    held = sum(amount for amount in amounts if amount is not None)
    unknown = any(amount is None for amount in amounts)
    if held >= needed:
        answer, reason = Answer.YES, None
    elif unknown:
        answer, reason = Answer.UNKNOWN, "the contract gave no answer"
    else:
        answer, reason = Answer.NO, None
    return Reading(requirement, answer, needed, held, sheet.block, sheet.source, sheet.block_time, reason)


def agree(first: Reading, second: Reading) -> Reading:
    """Both readings as one: where they disagree, nothing is known."""
    if first.answer is second.answer:
        return second
    return Reading(
        first.requirement, Answer.UNKNOWN, first.needed, None, second.block, second.source, second.observed_at,
        second.reason or "two nodes disagree",
    )  # fmt: skip


async def newest_block(db: AsyncSession, chain: str, contracts: Sequence[str], owners: Sequence[str]) -> int:
    """The newest block at which any of these was seen: an answer from before it is of no use."""
    newest = await db.exec(
        select(func.max(Observation.block)).where(
            Observation.chain == chain,
            col(Observation.contract).in_(contracts),
            col(Observation.address).in_(owners),
        )
    )
    return newest.one() or 0


async def remember(db: AsyncSession, asked: Iterable[tuple[Question, Answers]]) -> None:
    """Keep the trusted balances; what is unknown overwrites nothing, nor does an older block."""
    rows: Mapping[tuple[str, str, str], dict[str, Any]] = {
        (question.chain, contract, owner): {
            "chain": question.chain, "contract": contract, "address": owner, "amount": amount,
            "block": answers.sheet.block, "source": answers.sheet.source, "observed_at": answers.sheet.block_time,
        }
        for question, answers in asked
        if answers.sheet is not None
        for contract in question.contracts
        for owner in question.owners
        if (amount := answers.sheet.amount(contract, owner)) is not None
    }  # fmt: skip
    values = [rows[key] for key in sorted(rows)]
    for start in range(0, len(values), 4000):
        statement = insert(Observation).values(values[start : start + 4000])
        await db.execute(
            statement.on_conflict_do_update(
                index_elements=["chain", "contract", "address"],
                set_={name: statement.excluded[name] for name in ("amount", "block", "source", "observed_at")},
                where=col(Observation.block) <= statement.excluded.block,
            )
        )
