"""The page about first contact shows the figures counted here, while the product's own readers work."""

import asyncio
from collections.abc import Callable

import pytest

from benchmarks.costs import PAGE, filled
from benchmarks.support import call_counts, spending
from benchmarks.support.spending import Counted
from gateways.chains.catalogue import CHAINS
from gateways.provider_plans import ALCHEMY, FREE, INFURA, PAID, QUICKNODE, SOLANA, Plan
from services.health.following_cost import calls_a_day
from settings import Settings


@pytest.fixture(scope="module")
def counted() -> Counted:
    return asyncio.run(spending.count())


def test_the_page_has_the_tables_that_are_counted_now(counted: Counted) -> None:
    page = PAGE.read_text()
    assert filled(page, counted) == page, "bring it up to date: .venv/bin/python -m benchmarks.costs --write"


def test_the_doctor_estimates_what_is_counted(counted: Counted) -> None:
    """Within a twentieth, or within a sixth for a socket's polls, some of which coincide with the others."""
    far = {
        read: (plan.cost(guess), plan.cost(calls))
        for read, calls in counted.follows.items()
        for chain, pace, blocks, socket in [read]
        for guess in [calls_a_day(CHAINS[chain], pace, blocks, socket=socket)]
        for plan in FREE
        if plan.log_blocks == blocks or socket
        if plan.cost(guess) != pytest.approx(plan.cost(calls), rel=1 / 6 if socket else 1 / 20)
    }
    assert far == {}
    unfollowed = calls_a_day(CHAINS["base"], 0, None)
    assert unfollowed == counted.following("base", 0, None)


def test_the_page_names_each_plan_with_its_public_page() -> None:
    page = PAGE.read_text()
    assert [plan.title for plan in (*FREE, *PAID, *SOLANA) if f"[{plan.title}]({plan.page})" not in page] == []


async def test_a_slower_pace_costs_less_and_what_a_node_refuses_costs_more() -> None:
    often, slowly = await call_counts.following("base", 5), await call_counts.following("base", 60)
    narrow = await call_counts.following("base", 60, log_blocks=10)
    for plan in FREE:
        assert plan.cost(often) > 5 * plan.cost(slowly)
        assert plan.cost(narrow) > plan.cost(slowly)
    # A single node reads each block twice, ten blocks a request.
    assert narrow["eth_getLogs"] >= 2 * call_counts.DAY / 2 / 10


async def test_what_one_plan_refuses_does_not_change_what_another_costs() -> None:
    wide = await call_counts.following("base", 60)
    await call_counts.following("base", 60, log_blocks=5)
    assert await call_counts.following("base", 60) == wide


def test_the_worked_example_fits_its_plans_with_the_settings_that_it_names(counted: Counted) -> None:
    for plan in FREE:
        for setup, fits in (
            (spending.DEFAULT, plan is not QUICKNODE), (spending.SPARING[plan.key], True), (spending.QUICK, False),
        ):  # fmt: skip
            spent = spending.a_day(counted, plan, setup, spending.EXAMPLE)
            assert (spent <= (plan.a_day or 0)) == fits, (plan.title, setup)


def test_the_tables_have_the_default_of_the_settings() -> None:
    assert spending.DEFAULT.follow == Settings.model_fields["follow_seconds"].default


@pytest.mark.parametrize(
    ("plan", "calls", "cost"),
    [
        (ALCHEMY, {"eth_chainId": 9, "eth_call": 2, "eth_getLogs": 1, "batch": 5}, 112),
        (INFURA, {"eth_chainId": 1, "eth_call": 1, "eth_getLogs": 1, "batch": 2}, 342),
        (QUICKNODE, {"eth_call": 3, "eth_getLogs": 1, "batch": 1}, 80),
    ],
)
def test_calls_cost_what_the_plan_says(plan: Plan, calls: dict[str, float], cost: int) -> None:
    assert plan.cost(calls) == cost


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (7, "7"), (0.25, "0.25"), (999, "999"), (1_234, "1.23 k"), (999_900, "1 M"), (2e6, "2 M")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    say: Callable[[float], str] = spending.number
    assert say(value) == text
