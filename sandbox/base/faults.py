"""Faults: what a provider does wrong for a while, on request."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

from sandbox.base.chain_table import CHAINS
from sandbox.base.refusal import Refusal
from sandbox.base.route_faults import RouteFaults
from sandbox.base.traffic import HUNG_UP

RPC_TARGETS = tuple(f"{front}:{chain}" for chain in CHAINS for front in ("rpc", "rpc2"))
TARGETS = ("discord", "gateway", "opensea", "magiceden", "alchemy", *RPC_TARGETS, "solana", "metadata")
KINDS = ("down", "slow", "429", "500", "empty", "zero", "stale", "malformed")
SLOW_SECONDS = 30.0

Answer = Callable[[web.Request], web.StreamResponse | Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Fault:
    """A fault that is running; `since` and `until` are monotonic seconds."""

    kind: str
    since: float
    until: float


class Faults:
    """The running faults, at most one for each target; each ends after its time."""

    def __init__(self) -> None:
        self._running: dict[str, Fault] = {}
        self.routes = RouteFaults()
        """Faults of single routes (answers and latency), in addition to the target's one fault."""
        self._watchers: list[tuple[str, Callable[[str], None]]] = []

    def watch(self, target: str, began: Callable[[str], None]) -> None:
        """Call `began` with the kind whenever a fault of the target begins."""
        self._watchers.append((target, began))

    def set(self, target: str, kind: str, seconds: float) -> None:
        """Start a fault in place of the target's earlier one. Raises Refusal: 404 for the target, 400 for the kind."""
        check_target(target)
        if kind not in KINDS:
            raise Refusal(400, f"No fault is called {kind!r}. The kinds are: {', '.join(KINDS)}.")
        if kind == "zero" and target != "solana" and target not in RPC_TARGETS:
            raise Refusal(400, "The fault 'zero' exists for nodes only: rpc:<chain>, rpc2:<chain> and solana.")
        if kind == "stale" and target in ("discord", "gateway", "metadata"):
            raise Refusal(400, "The fault 'stale' exists for nodes and indexers only.")
        if seconds <= 0:
            raise Refusal(400, "A fault lasts more than 0 seconds.")
        now = time.monotonic()
        self._running[target] = Fault(kind, now, now + seconds)
        for watched, began in self._watchers:
            if watched == target:
                began(kind)

    def clear(self) -> None:
        """End every fault."""
        self._running.clear()
        self.routes.clear()

    def fault(self, target: str) -> Fault | None:
        """Return the target's running fault, with the moment it began, or None."""
        fault = self._running.get(target)
        if fault is not None and fault.until <= time.monotonic():
            del self._running[target]
            return None
        return fault

    def active(self, target: str) -> str | None:
        """Return the kind of the target's running fault, or None."""
        fault = self.fault(target)
        return fault.kind if fault else None

    def running(self) -> dict[str, tuple[str, float]]:
        """Return target → (kind, seconds left), for people to read."""
        now = time.monotonic()
        return {
            target: (fault.kind, fault.until - now)
            for target in list(self._running)
            if (fault := self.fault(target)) is not None
        }

    async def apply(
        self, request: web.Request, target: str, answers: Mapping[str, Answer] | None = None
    ) -> web.StreamResponse | None:
        """Act on the target's running fault: return the faulty answer, or None when the request proceeds as usual.

        `answers` has the provider's own answers by kind (429, empty, malformed, …); it may also replace 500. For a kind
        that is neither in `answers` nor generic, None is returned: the provider handles it further down.
        """
        kind = self.active(target)
        if kind is None:
            return None
        if answers and kind in answers:
            given = answers[kind](request)
            return given if isinstance(given, web.StreamResponse) else await given
        if kind == "down":
            return hang_up(request)
        if kind == "slow":
            await asyncio.sleep(SLOW_SECONDS)
            return None
        if kind == "500":
            return web.Response(status=500, text="Internal Server Error")
        return None


def check_target(target: str) -> None:
    """Raise Refusal(404) for a name that is not a target."""
    if target not in TARGETS:
        raise Refusal(404, f"No target is called {target!r}. The targets are: {', '.join(TARGETS)}.")


def hang_up(request: web.Request) -> web.Response:
    """Close the connection without an answer. The response returned is never sent, and is logged as status 0."""
    request[HUNG_UP] = True
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
