"""Previews of what a rule would do: how many run at a time, however many anybody asks for."""

import asyncio
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateways import Gateways
from services.engine import read_and_confirm
from services.engine.previews import impact, preview_log
from services.engine.previews.impact import AT_ONCE
from services.engine.previews.plan import PreviewPlan
from services.engine.reconcile_outcome import BatchOutcome
from services.rules.expression import parse_stored

OUTSIDE = cast("Gateways", SimpleNamespace())


@pytest.mark.parametrize("condition", [{"type": "newer"}, {"type": "basic", "chain": "base", "newer": True}])
def test_names_are_left_out_where_nobody_here_knows_how_few_may_meet_a_condition(condition: dict[str, Any]) -> None:
    cats = {"type": "basic", "chain": "base", "contract": "0x" + "5e" * 20, "minTokens": 1}
    assert not preview_log.is_identifying(parse_stored(cats))
    assert preview_log.is_identifying(parse_stored(cats), parse_stored(condition))


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


def asks(user_id: int) -> "asyncio.Task[impact.Impact]":
    batch: Any = ([f"user {user_id}"], {})
    plan = PreviewPlan(roles={}, batches=(batch,), names={}, concerned=1, asked_by=user_id)
    return asyncio.create_task(impact.whole(OUTSIDE, plan))


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


async def test_a_look_whose_turn_does_not_come_in_time_says_that_it_looked_at_nobody(
    chains: Chains, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [asks(1) for _ in range(AT_ONCE)]
    await until_waiting(first)
    monkeypatch.setattr(impact, "LONGEST_SECONDS", 0)
    late = await asks(1)
    assert (late.looked, late.concerned) == (0, 1)
    for task in first:
        task.cancel()
    await asyncio.gather(*first, return_exceptions=True)
    monkeypatch.undo()
    monkeypatch.setattr(read_and_confirm, "decide_cases", chains.decide_cases)
    chains.go.set()
    assert (await asks(1)).looked == 1, "who gives up gives the turn back"
