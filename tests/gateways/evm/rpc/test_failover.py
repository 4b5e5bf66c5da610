"""Failover: the error raised when no node has a good answer."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from gateways.evm.rpc.failover import first_answer, rested_first
from gateways.transport.errors import NotThere, ProviderConfused, ProviderDown, ProviderError, Unauthorized


class Said:
    """A node that fails with the given error."""

    def __init__(self, fault: ProviderError) -> None:
        self.fault = fault
        self.resting_until = 0.0


MISSING, DOWN, ODD = NotThere("a", "it is not there"), ProviderDown("b", "no answer"), ProviderConfused("c", "odd")


@pytest.mark.parametrize(
    ("faults", "raised"),
    [
        ([MISSING, MISSING], MISSING),
        ([DOWN, MISSING], DOWN),
        ([MISSING, DOWN], DOWN),
        ([ODD, MISSING, MISSING], ODD),
        ([DOWN, ODD], ODD),
    ],
)
async def test_nothing_counts_as_missing_while_a_node_fails(
    faults: Sequence[ProviderError], raised: ProviderError
) -> None:
    async def ask(node: Any) -> str:
        raise node.fault

    nodes = cast(Any, [Said(fault) for fault in faults])
    with pytest.raises(ProviderError) as found:
        await first_answer("Base", nodes, ask, asyncio.get_running_loop().time() + 5)
    assert found.value is raised


async def test_a_node_that_refuses_its_key_is_asked_last() -> None:
    async def ask(node: Any) -> str:
        if node is expired:
            raise node.fault
        return "answer"

    expired, other = nodes = cast(Any, [Said(Unauthorized("a", "HTTP 401", status=401)), Said(DOWN)])
    assert await first_answer("Base", nodes, ask, asyncio.get_running_loop().time() + 5) == "answer"
    assert rested_first(nodes) == [other, expired]


class Slow:
    """A node whose answers come, but not before the question's time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.resting_until = 0.0


async def answered(node: Any) -> str:
    await asyncio.sleep(node.seconds)
    return "answer"


async def test_a_node_that_leaves_the_others_no_time_is_asked_last() -> None:
    slow, other = nodes = cast(Any, [Slow(60.0), Slow(0.0)])
    clock = asyncio.get_running_loop()
    with pytest.raises(ProviderDown, match="in time"):
        await first_answer("Base", nodes, answered, clock.time() + 0.1)
    assert rested_first(nodes) == [other, slow]
    assert await first_answer("Base", rested_first(nodes), answered, clock.time() + 5) == "answer"


async def test_a_node_that_had_only_the_rest_of_the_time_keeps_its_place() -> None:
    async def ask(node: Any) -> str:
        if node is down:
            raise DOWN
        return await answered(node)

    down, other = nodes = cast(Any, [Slow(0.0), Slow(60.0)])
    with pytest.raises(ProviderDown):
        await first_answer("Base", nodes, ask, asyncio.get_running_loop().time() + 0.1)
    assert rested_first(nodes) == [other, down]
