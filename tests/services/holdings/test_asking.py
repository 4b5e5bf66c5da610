"""Many contracts asked token by token: each gets its turn and its full deadline."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from gateways import Gateways
from gateways.chains.token_sheet import TokenSheet
from services.holdings import fetch
from services.holdings.evaluate import Answers
from services.holdings.fetch import AT_ONCE, HoldingsQuestion
from services.holdings.fetch_plan import Wants
from services.runtime import time_budget
from tests.services.holdings.test_evaluate import balances, tokens

MANY = tuple((f"0x{number:040x}", ()) for number in range(1, 25))
NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Crowded:
    """A chain that records how many questions it had at a time."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def tokens(self, chain: str, contract: str, owners: Sequence[str], **_: Any) -> TokenSheet:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return TokenSheet(chain, contract, 70, NOW, 0, "Base node 1", {}, {})

    def endpoints(self, _: str) -> int:
        return 2


async def test_not_all_contracts_are_asked_at_once_so_that_none_spends_its_deadline_in_the_line() -> None:
    chains = Crowded()
    outside = cast(Gateways, cast(object, SimpleNamespace(chains=chains)))
    question = HoldingsQuestion("base", Wants(tokens=MANY), ("0x" + "a1" * 20,))
    first = await fetch.ask(outside, question)
    second = await fetch.ask_again(outside, question, (first,))
    assert set(first.tokens) == set(second.tokens) == set(MANY)
    assert 1 < chains.most <= AT_ONCE


class HalfSlow(Crowded):
    """A chain on which the contract `slow` never answers."""

    def __init__(self, slow: str) -> None:
        super().__init__()
        self.slow = slow

    async def tokens(self, chain: str, contract: str, owners: Sequence[str], **more: Any) -> TokenSheet:
        if contract == self.slow:
            await asyncio.Event().wait()
        return await super().tokens(chain, contract, owners, **more)


async def test_what_a_server_has_no_time_left_for_is_unknown_and_the_rest_is_known() -> None:
    slow = MANY[3]
    outside = cast(Gateways, cast(object, SimpleNamespace(chains=HalfSlow(slow[0]))))
    with time_budget.of(0.2):
        answers = await fetch.ask(outside, HoldingsQuestion("base", Wants(tokens=MANY), ("0x" + "a1" * 20,)))
    assert answers.tokens.pop(slow) == fetch.OUT_OF_TIME
    assert len(answers.tokens) == len(MANY) - 1
    assert all(isinstance(one, TokenSheet) for one in answers.tokens.values())


def test_answers_are_as_old_as_the_oldest_block_in_them() -> None:
    older = replace(tokens("base", {}), block_time=NOW - timedelta(minutes=5))
    mixed = Answers(sheet=balances("base", {}), tokens={(older.contract, ()): older}, anything="HTTP 500")
    assert (mixed.as_of, Answers().as_of) == (older.block_time, None)
