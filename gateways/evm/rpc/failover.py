"""Ask one node of a chain after another, on Solana too; a node that failed is asked last for a while."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from gateways.evm.rpc.node import Node
from gateways.transport import question_time
from gateways.transport.errors import NotThere, ProviderBusy, ProviderDown, ProviderError, Unauthorized

REQUEST_SECONDS = 6.0
SILENT_AFTER = 2.0
"""Seconds without an answer to any caller after which a node with a request under way counts as silent."""
REST_SECONDS = 30.0
"""Seconds for which a node that did not answer, or that refused its key, is asked last."""

T = TypeVar("T")
N = TypeVar("N", bound=Node)


def all_silent(nodes: Sequence[Node]) -> bool:
    """Return whether some of these nodes have requests under way and none of those has answered for SILENT_AFTER."""
    asked = [seconds for node in nodes if (seconds := node.silent_for) is not None]
    return bool(asked) and min(asked) >= SILENT_AFTER


def rested_first(nodes: Sequence[N]) -> list[N]:
    """Return the nodes in their configured order, those that failed recently last."""
    now = asyncio.get_running_loop().time()
    return sorted(nodes, key=lambda node: node.resting_until > now)


async def first_answer(title: str, nodes: Sequence[N], ask: Callable[[N], Awaitable[T]], deadline: float) -> T:
    """Return the first good answer of these nodes of the chain with this title, before `deadline` (loop time).

    Time spent waiting for a turn does not count, but the whole takes at most three times the time to the deadline.
    Raises the last ProviderError when no answer is good, but NotThere only when every node says so: a node that failed
    might know it. A node that did not answer, refused its key, or left the others no time is asked last for a while.
    """
    clock = asyncio.get_running_loop()
    last: ProviderError | None = None
    asked = 0
    try:
        async with question_time.of(deadline):
            for node in nodes:
                asked += 1
                try:
                    answer = await ask(node)
                except ProviderError as fault:
                    if last is None or not isinstance(fault, NotThere):
                        last = fault
                    if isinstance(fault, ProviderDown | ProviderBusy | Unauthorized):
                        node.resting_until = clock.time() + REST_SECONDS
                    continue
                node.resting_until = 0.0
                return answer
    except TimeoutError:
        if asked == 1 and len(nodes) > 1:
            # Each of its requests may have been answered, but the other nodes would never have their turn.
            nodes[0].resting_until = clock.time() + REST_SECONDS
        last = ProviderDown(last.provider if last else title, "no answer in time")
    raise last or ProviderDown(title, "no answer in time")
