"""How many calls a node takes in one JSON-RPC batch: learnt from its refusals, and tried again after a while."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar, cast

from gateways.evm.rpc import node_limits
from gateways.evm.rpc.errors import Reverted, RpcRefused, TooMuch
from gateways.evm.rpc.stated_limits import stated_calls
from gateways.transport.errors import ProviderError, ProviderRefused, Unauthorized

AT_ONCE = 4
"""Batches of one question that are under way at a time."""
REMEMBERED = 3_600.0
"""Seconds after which a node that refused a batch is sent a whole one again."""

T = TypeVar("T")
Ask = Callable[[int, int], Awaitable[list[T]]]
"""Sends the calls from one number up to but not including another in one request, and returns their results."""


class BatchRefused(RpcRefused):
    """The node takes no batches, or none of this size; smaller ones may pass."""


def unpacked(answer: object, count: int) -> object:
    """Return the answer to a batch of `count` calls, and of a list with one error in place of all answers that error.

    Geth refuses a whole batch in this way, with the id of the first call.
    """
    items = cast("list[object]", answer) if isinstance(answer, list) else []
    is_refusal = len(items) == 1 < count and isinstance(items[0], dict) and "error" in items[0]
    return next(iter(items)) if is_refusal else cast("object", answer)


def is_about_the_batch(fault: ProviderError) -> bool:
    """Return whether the answer to a whole batch refuses it for being a batch, and not for what it asks."""
    if "batch" in str(fault).lower():
        return True
    # Too many bytes or too much gas depend on the calls, so they say nothing about the next batch.
    return isinstance(fault, ProviderRefused) and not isinstance(fault, TooMuch | Unauthorized)


def one_by_one_refused(result: object) -> bool:
    """Return whether a call's result refuses its batch; a revert, whose words the contract chooses, does not."""
    return _refuses(result) and "batch" in str(result).lower()


class BatchSize:
    """The largest batch that one node takes, as learnt from its refusals."""

    def __init__(self, url: str = "") -> None:
        self._url = url
        self._most: int | None = None
        self._until = 0.0
        """Until when (monotonic seconds) the limit applies; 0.0 while nothing was learnt here."""

    @property
    def most(self) -> int | None:
        """How many calls a request may have; None while the node has refused none."""
        if self._until == 0.0 and (known := self._known):
            self._most, self._until = known, monotonic() + REMEMBERED
        if self._most is not None and monotonic() >= self._until:
            self._most = None
        return self._most

    @property
    def _known(self) -> int | None:
        return node_limits.known(self._url).batch if self._url else None

    def _note(self, size: int | None) -> None:
        if self._url:
            node_limits.note(self._url, batch=size)

    async def ask(self, count: int, ask: Ask[T]) -> list[T]:
        """Return the results of `count` calls in their order, in as few requests as the node takes.

        The first request is answered before the others are sent. Raises what `ask` raises, and the batch's refusal
        where the node also refuses the first call alone.
        """
        found: dict[int, list[T]] = {}
        todo, size, refusal = [(0, count)] if count else [], self.most or max(1, count), None
        while todo:
            pieces = [(at, min(at + size, stop)) for start, stop in todo for at in range(start, stop, size)]
            now = pieces[: AT_ONCE if found else 1]
            again = list[tuple[int, int]]()
            for (start, stop), answer in zip(now, await _all(ask, now), strict=True):
                if isinstance(answer, BatchRefused) and stop - start > 1:
                    stated = stated_calls(str(answer))
                    fewer = stated if stated is not None and stated < stop - start else (stop - start) // 2
                    size, refusal = min(size, fewer), answer
                    again.append((start, stop))
                elif isinstance(answer, BaseException):
                    raise answer
                elif refusal and not found and _refuses(answer[0]):
                    raise refusal
                else:
                    found[start] = answer
            if refusal and found:
                self._most, self._until = size, monotonic() + REMEMBERED
                self._note(size)
            todo = again + pieces[len(now) :]
        if self._known is not None and max(map(len, found.values()), default=0) > self._known:
            self._note(None)
        return [result for start in sorted(found) for result in found[start]]


async def _all(ask: Ask[T], pieces: list[tuple[int, int]]) -> list[list[T] | BaseException]:
    if len(pieces) > 1:
        return await asyncio.gather(*(ask(*piece) for piece in pieces), return_exceptions=True)
    try:
        return [await ask(*pieces[0])]
    except ProviderError as fault:
        return [fault]


def _refuses(answer: object) -> bool:
    """Return whether the answer to one call is the node's refusal of such calls, and not what a contract did."""
    return isinstance(answer, RpcRefused) and not isinstance(answer, Reverted | TooMuch)
