"""Failover: the error raised when no node has a good answer."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from gateways.evm.rpc.failover import first_answer
from gateways.transport.errors import NotThere, ProviderConfused, ProviderDown, ProviderError


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
