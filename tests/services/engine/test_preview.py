"""Previews of what a rule would do: how many run at a time, however many anybody asks for."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateways import Gateways
from services.engine import read_and_confirm
from services.engine.previews import identifying, preview
from services.engine.previews.plan import PreviewPlan
from services.engine.previews.preview import AT_ONCE
from services.engine.reconcile_outcome import BatchOutcome
from services.rules.expression import parse_stored

OUTSIDE = cast("Gateways", SimpleNamespace())


@pytest.mark.parametrize("condition", [{"type": "newer"}, {"type": "basic", "chain": "base", "newer": True}])
def test_names_are_left_out_where_nobody_here_knows_how_few_may_meet_a_condition(condition: dict[str, Any]) -> None:
    cats = {"type": "basic", "chain": "base", "contract": "0x" + "5e" * 20, "minTokens": 1}
    assert not identifying.is_identifying(parse_stored(cats))
    assert identifying.is_identifying(parse_stored(cats), parse_stored(condition))


CATS = {"chain": "base", "contract": "0x" + "5e" * 20}
TOKEN = {"type": "token_id", **CATS, "tokenIds": ["1"]}


@pytest.mark.parametrize(
    ("condition", "by_absence"),
    [
        (TOKEN, False),
        ({"type": "basic", **CATS, "minTokens": 1}, False),
        ({"not": {"type": "basic", **CATS, "minTokens": 1}}, False),
        ({"all": [{"type": "any_wallet"}, {"not": TOKEN}]}, True),
        ({"not": {"not": TOKEN}}, False),
        ({**TOKEN, "minTokens": 0, "maxTokens": 0}, True),
    ],
)
def test_a_rule_on_what_must_not_be_held_can_name_somebody_by_leaving_them_out(
    condition: dict[str, Any], by_absence: bool
) -> None:
    assert identifying.is_identifying_by_absence(parse_stored(condition)) == by_absence


def one_gains(number: int, role_id: str = "1") -> preview.MemberImpact:
    return preview.MemberImpact(str(number), f"member {number}", role_id, "Role", preview.GAIN)


@pytest.mark.parametrize(
    ("members", "looked", "by_absence", "named"),
    [
        ([one_gains(number) for number in range(4)], 100, False, False),
        ([one_gains(number) for number in range(5)], 100, False, True),
        # One person who gains the roles of five rules is one person.
        ([one_gains(1, role_id=str(number)) for number in range(5)], 100, False, False),
        ([one_gains(number) for number in range(99)], 100, False, True),
        ([one_gains(number) for number in range(99)], 100, True, False),
        ([one_gains(number) for number in range(95)], 100, True, True),
        ([one_gains(number) for number in range(100)], 100, True, True),
    ],
)
async def test_nobody_is_named_where_few_people_meet_a_rule_on_tokens_or_few_do_not(
    monkeypatch: pytest.MonkeyPatch, members: list[preview.MemberImpact], looked: int, by_absence: bool, named: bool
) -> None:
    async def impacts(*_: object) -> AsyncIterator[preview.Impact]:
        yield preview.Impact(tuple(members), looked, looked)

    monkeypatch.setattr(preview, "_impacts", impacts)
    plan = PreviewPlan(
        roles={}, batches=(), names={}, concerned=looked, asked_by=1, is_identifying=True, by_absence=by_absence
    )
    found = await preview.whole(OUTSIDE, plan)
    assert bool(found.members) == named
    assert found.count(preview.GAIN) == len(members)


class Chains:
    """Previews that wait until `go` is set; `running` names the person whom each is for."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.go = asyncio.Event()

    async def decide_cases(self, outside: Gateways, batch: Any, wanted: Any, now: datetime) -> BatchOutcome:
        (who,) = batch
        self.running.append(who)
        await self.go.wait()
        self.running.remove(who)
        return BatchOutcome(asked=[])


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> Chains:
    made = Chains()
    monkeypatch.setattr(read_and_confirm, "decide_cases", made.decide_cases)
    return made


def asks(user_id: int) -> "asyncio.Task[preview.Impact]":
    batch: Any = ([f"user {user_id}"], {})
    plan = PreviewPlan(roles={}, batches=(batch,), names={}, concerned=1, asked_by=user_id)
    return asyncio.create_task(preview.whole(OUTSIDE, plan))


async def until_waiting(tasks: list[Any]) -> None:
    """Let the event loop run until every task has come as far as it can."""
    for _ in range(20 * len(tasks)):
        await asyncio.sleep(0)


async def test_one_persons_looks_wait_for_each_other_and_keep_nobody_else_waiting(chains: Chains) -> None:
    tasks = [*(asks(1) for _ in range(AT_ONCE + 3)), asks(2)]
    await until_waiting(tasks)
    assert sorted(chains.running) == [*["user 1"] * AT_ONCE, "user 2"]
    chains.go.set()
    assert [found.looked for found in await asyncio.gather(*tasks)] == [1] * len(tasks)


async def test_a_preview_whose_turn_does_not_come_in_time_says_that_it_read_nobody(
    chains: Chains, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [asks(1) for _ in range(AT_ONCE)]
    await until_waiting(first)
    monkeypatch.setattr(preview, "LONGEST_SECONDS", 0)
    late = await asks(1)
    assert (late.looked, late.concerned) == (0, 1)
    for task in first:
        task.cancel()
    await asyncio.gather(*first, return_exceptions=True)
    monkeypatch.undo()
    monkeypatch.setattr(read_and_confirm, "decide_cases", chains.decide_cases)
    chains.go.set()
    assert (await asks(1)).looked == 1, "who gives up gives the turn back"
