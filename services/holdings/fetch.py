"""Fetch holdings from the chains in bulk, fetch them a second time if a role depends on them, and store them."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gateways import Gateways
from gateways.chains.balance_sheet import BalanceSheet
from gateways.chains.node_providers import other_nodes
from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints, TokenSheet
from gateways.chains.view_sheet import ViewQuestion, ViewSheet
from gateways.transport.errors import ProviderError
from locales import N_
from models.db.session import AsyncSession
from services.collections import standards
from services.collections.trait_match import TokenTraits
from services.collections.trait_sources import TokenKey
from services.holdings import stored_balances, token_hints
from services.holdings.evaluate import Answers
from services.holdings.fetch_plan import ANY, EVM, TokenWant, Wants, family_of
from services.holdings.shared_balances import JointBalances
from services.holdings.token_hints import Trails
from services.runtime import time_budget

S = TypeVar("S", BalanceSheet, TokenSheet, ViewSheet)

OUT_OF_TIME = N_("it was not read in the time that one server may take")
MOST_SORTED = 3
"""Maximum contracts without any balance whose standard is read for one request."""
SORTING_SECONDS = 5.0
SORTED_FOR, UNSORTED_FOR = 600.0, 60.0
"""Seconds until a contract is asked again whose standard does not explain its silence, or could not be read."""
AT_ONCE = 4
"""Maximum contracts of one chain that are read token by token at a time, and maximum functions. Each uses several of a
node's connections."""


@dataclass(frozen=True, slots=True)
class HoldingsQuestion:
    """The wallets on one chain to read, the earliest block, and hints for finding tokens."""

    chain: str
    wants: Wants
    owners: tuple[str, ...]
    not_before: int = 0
    trails: Trails = field(default_factory=dict[str, Mapping[str, TokenHints]])
    traits: Mapping[TokenKey, TokenTraits] = field(default_factory=dict[TokenKey, TokenTraits])
    server_id: int = 0


async def ask(outside: Gateways, question: HoldingsQuestion, joint: JointBalances | None = None) -> Answers:
    """Read everything wanted; an error of the provider becomes the reason why something is unknown.

    Questions with the same `joint` that begin together share their balance requests.
    """
    reader = _Reader(outside, question, (), joint)
    answers = await reader.all()
    await reader.sort_out(answers)
    answers.traits.update(question.traits)
    return answers


async def ask_all(outside: Gateways, questions: Sequence[HoldingsQuestion]) -> list[Answers]:
    """Ask every question at once; an error of one chain affects only its own answers."""
    together = JointBalances(outside.chains)
    return list(await asyncio.gather(*(ask(outside, question, together) for question in questions)))


async def ask_again(
    outside: Gateways, question: HoldingsQuestion, before: Sequence[Answers], joint: JointBalances | None = None
) -> Answers:
    """Read a second time, at a settled block: from another node, or from the same one if no other answers.

    `before` has the first answers, then incomplete second ones; the nodes that gave these are not asked again. Anything
    that was unknown at first stays unknown. Traits are left unknown, because they need their own second read.
    """
    return await _Reader(outside, question, before, joint).all()


async def ask_all_again(
    outside: Gateways, asked: Sequence[tuple[HoldingsQuestion, Sequence[Answers]]]
) -> list[Answers]:
    """Read every question a second time at once, each with its earlier answers."""
    joint = JointBalances(outside.chains, settled=True)
    return list(await asyncio.gather(*(ask_again(outside, question, before, joint) for question, before in asked)))


_sorted_until: dict[tuple[str, str], float] = {}
"""Chain and contract without any balance → until when its standard is not read again, in monotonic seconds."""
MOST_REMEMBERED = 10_000


class _Reader:
    """Asks the parts of one question, for the first time or, with the earlier answers, from another node."""

    def __init__(
        self,
        outside: Gateways,
        question: HoldingsQuestion,
        before: Sequence[Answers],
        joint: JointBalances | None = None,
    ) -> None:
        self._chains = outside.chains
        self._joint = joint or JointBalances(outside.chains, settled=bool(before))
        # Apart from the other balances, because strangers choose these contracts.
        self._of_vaults = JointBalances(outside.chains, settled=bool(before))
        self._question = question
        self._owners = frozenset(question.owners)
        self._claimed = dict(question.wants.claimed)
        self._before = before
        self._first = before[0] if before else None
        self._turns, self._view_turns = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AT_ONCE)

    async def all(self) -> Answers:
        """Ask all parts at once."""
        wants, first = self._question.wants, self._first
        answers = Answers(
            self._owners,
            beside=frozenset(wants.beside),
            coins=frozenset(wants.coins) - {*wants.balances, *wants.beside},
            settled=first is not None,
        )

        async def balances() -> None:
            said = await self._get(lambda one: one.sheet or one.fault or one.coin_fault, self._balances)
            if isinstance(said, str):
                # A missing answer about balances that are only additional makes nothing unknown.
                answers.fault = said if wants.balances else None
                answers.coin_fault = said if wants.coins else None
            else:
                answers.sheet = said

        async def tokens(want: TokenWant) -> None:
            # Each has its own deadline: if all ran at once, the last ones would only wait.
            async with self._turns:
                answers.tokens[want] = await self._get(
                    lambda one: one.tokens.get(want), lambda node: self._tokens(want, node)
                )

        async def anything() -> None:
            answers.anything = await self._get(lambda one: one.anything, self._anything)

        async def view(call: ViewQuestion) -> None:
            async with self._view_turns:
                answers.calls[call] = await self._get(
                    lambda one: one.calls.get(call), lambda node: self._view(call, node)
                )

        async def of_vault(vault: str, contracts: tuple[str, ...]) -> None:
            answers.of_vaults[vault] = await self._get(
                lambda one: one.of_vaults.get(vault), lambda node: self._balances_of(vault, contracts, node)
            )

        async def in_time(part: Coroutine[Any, Any, None]) -> None:
            with suppress(TimeoutError):
                async with time_budget.timeout():
                    await part

        # A contract that turned out to count by tokens is not in `wants`.
        named = (*wants.tokens, *dict(wants.claimed), *(first.tokens if first is not None else ()))
        every = [want for want in dict.fromkeys(named) if self._owners_of(want)]
        # Shuffled, so that the time limit does not always omit the same contracts.
        random.shuffle(every)
        calls = random.sample(wants.calls, len(wants.calls))
        vaults = {vault: contracts for vault, contracts in wants.of_vaults if vault in self._owners}
        answers.calls.update(dict.fromkeys(calls, OUT_OF_TIME))
        answers.of_vaults.update(dict.fromkeys(vaults, OUT_OF_TIME))
        answers.tokens.update(dict.fromkeys(every, OUT_OF_TIME))
        answers.anything = OUT_OF_TIME if wants.anything else None
        await asyncio.gather(
            *([balances()] if wants.balances or wants.beside or wants.coins else []),
            *(in_time(tokens(want)) for want in every),
            *(in_time(view(call)) for call in calls),
            *([in_time(anything())] if wants.anything else []),
            *(in_time(of_vault(vault, contracts)) for vault, contracts in vaults.items()),
        )
        return answers

    async def sort_out(self, answers: Answers) -> None:
        """Read the standard of contracts without any balance, and read their tokens if that helps.

        The stored standard does not matter, because a proxy may lead to another contract by now.
        """
        question, sheet = self._question, answers.sheet
        if sheet is None or not question.owners or family_of(question.chain) != EVM:
            return
        now = time.monotonic()
        silent = [
            contract
            for contract in question.wants.balances
            if sheet.unknown(contract) == len(question.owners)
            and now >= _sorted_until.get((question.chain, contract), now)
        ]
        with suppress(TimeoutError):
            async with time_budget.timeout(SORTING_SECONDS):
                for contract in random.sample(silent, min(len(silent), MOST_SORTED)):
                    await self._sort_out(contract, answers)

    async def _sort_out(self, contract: str, answers: Answers) -> None:
        chain, rest = self._question.chain, UNSORTED_FOR
        try:
            standard = await self._chains.contract_standard(chain, contract)
            rest = 0.0 if standard == standards.MANY else SORTED_FOR
        except ProviderError:
            return
        finally:
            if len(_sorted_until) >= MOST_REMEMBERED:
                _sorted_until.clear()
            _sorted_until[chain, contract] = time.monotonic() + rest
        if standard is None or standard == "none":
            return
        answers.standards[contract] = standard
        if standard == standards.MANY:
            want = (contract, ())
            answers.tokens[want] = OUT_OF_TIME
            answers.tokens[want] = await _attempt(lambda node: self._tokens(want, node), None)

    async def _get(
        self, part: Callable[[Answers], S | str | None], call: Callable[[int | None], Awaitable[S]]
    ) -> S | str:
        """Read the first time from any node, the second time from another one, or the same one if no other answers.

        The second read is of a settled block. Nodes whose answers were incomplete are not asked again.
        """
        if self._first is None:
            return await _attempt(call, None)
        first = part(self._first)
        if first is None or isinstance(first, str):
            return first or N_("not looked at")
        later = [part(one) for one in self._before[1:]]
        tried = {one.endpoint for one in later if one is not None and not isinstance(one, str)}
        chain, asked = self._question.chain, first.endpoint
        others = other_nodes(chain, asked, self._chains.endpoints(chain))
        answer: S | str = N_("no other node is able to answer")
        for node in (*others, asked):
            if node not in tried:
                answer = await _attempt(call, node)
            if not isinstance(answer, str):
                break
        return answer

    async def _balances(self, node: int | None) -> BalanceSheet:
        question = self._question
        wants = question.wants
        contracts = tuple(dict.fromkeys((*wants.balances, *wants.beside, *wants.coins)))
        return await self._joint.read(
            question.chain, contracts, question.owners, endpoint=node, not_before=question.not_before,
            coins=frozenset(wants.coins),
        )  # fmt: skip

    async def _balances_of(self, vault: str, contracts: tuple[str, ...], node: int | None) -> BalanceSheet:
        question = self._question
        return await self._of_vaults.read(
            question.chain, contracts, (vault,), endpoint=node, not_before=question.not_before
        )

    async def _tokens(self, want: TokenWant, node: int | None) -> TokenSheet:
        (contract, ids), owners = want, self._owners_of(want)
        trails, at = self._hints(contract, want), self._at(node)
        return await self._chains.tokens(self._question.chain, contract, owners, token_ids=ids, trails=trails, at=at)

    def _owners_of(self, want: TokenWant) -> Sequence[str]:
        """Return the wallets to ask about these tokens."""
        vaults = self._claimed.get(want)
        return self._question.owners if vaults is None else [one for one in vaults if one in self._owners]

    async def _view(self, call: ViewQuestion, node: int | None) -> ViewSheet:
        question = self._question
        return await self._chains.view(question.chain, call, question.owners, at=self._at(node))

    async def _anything(self, node: int | None) -> TokenSheet:
        question, trails = self._question, self._hints(ANY, None)
        return await self._chains.anything(question.chain, question.owners, trails=trails, at=self._at(node))

    def _at(self, node: int | None) -> ReadPoint:
        return ReadPoint(node, self._question.not_before, self._first is not None)

    def _hints(self, contract: str, want: TokenWant | None) -> Mapping[str, TokenHints]:
        """Return the hints with the ids of the first read; its searched blocks do not count for another node."""
        hints = dict(self._question.trails.get(contract, {}))
        if self._first is not None:
            sheet = self._first.anything if want is None else self._first.tokens.get(want)
            if isinstance(sheet, TokenSheet):
                for owner, trail in sheet.trails.items():
                    hints[owner] = hints.get(owner, TokenHints()).with_ids(sorted(trail.ids))
        return hints


async def _attempt(call: Callable[[int | None], Awaitable[S]], node: int | None) -> S | str:
    try:
        return await call(node)
    except ProviderError as fault:
        return str(fault)


Asked = Sequence[tuple[HoldingsQuestion, Answers]]
"""Questions, each with the chain's answers."""


async def remember(db: AsyncSession, asked: Asked) -> None:
    """Store the trusted balances, the token hints, and the contracts' standards.

    Unknown or older readings overwrite nothing.
    """
    await stored_balances.remember(
        db,
        [
            stored_balances.BalanceRead(question.server_id, contracts, question.owners, answers.sheet)
            for question, answers in asked
            # A settled block is older than that of the first read.
            if answers.sheet is not None
            and (contracts := tuple(dict.fromkeys((*question.wants.balances, *question.wants.coins))))
            and not answers.settled
        ],
    )
    for question, _ in asked:
        if question.trails:
            token_hints.still_wanted(db, question.chain, sorted(question.trails), question.owners)
    await token_hints.remember(db, [one for question, answers in asked for one in _new_trails(question, answers)])
    learnt = {
        (question.chain, contract): standard
        for question, answers in asked
        for contract, standard in answers.standards.items()
    }
    await standards.remember(db, learnt)


def _new_trails(question: HoldingsQuestion, answers: Answers) -> Iterable[tuple[str, str, str, TokenHints]]:
    # No hints were loaded for tokens in claims, so theirs are not whole.
    claimed = dict(question.wants.claimed)
    sheets = (*(sheet for want, sheet in answers.tokens.items() if want not in claimed), answers.anything)
    for sheet in (one for one in sheets if isinstance(one, TokenSheet)):
        before = question.trails.get(sheet.contract, {})
        for address, trail in sheet.trails.items():
            if trail != before.get(address):
                yield question.chain, sheet.contract, address, trail
