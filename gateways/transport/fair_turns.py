"""Fair use of a limited resource: the tenant of each request, and a gate that shares its places among tenants."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from types import TracebackType

from gateways.transport import question_time


@dataclass(frozen=True, slots=True)
class Caller:
    """The tenant that code runs for. The tenant "" is the product itself, working for all tenants."""

    tenant: str = ""
    urgent: bool = False


_PRODUCT = Caller()
_caller: ContextVar[Caller] = ContextVar("caller", default=_PRODUCT)


def caller() -> Caller:
    """Return the caller for whom the running code works."""
    return _caller.get()


@contextmanager
def on_behalf_of(tenant: str, *, urgent: bool | None = None) -> Generator[None]:
    """Set the tenant ("server:12") of every request made inside the `with`, also by tasks created there.

    `urgent` requests may use a gate's reserved places; None keeps the urgency of the surrounding code.
    """
    before = _caller.get()
    token = _caller.set(Caller(tenant, before.urgent if urgent is None else urgent))
    try:
        yield
    finally:
        _caller.reset(token)


class Place:
    """A place at a gate, held until `give_back`; a second call does nothing."""

    def __init__(self, gate: "FairGate", caller: Caller) -> None:
        self._gate: FairGate | None = gate
        self._caller = caller

    def give_back(self) -> None:
        """Free the place for the next caller in turn."""
        gate, self._gate = self._gate, None
        if gate is not None:
            gate._freed(self._caller)  # pyright: ignore[reportPrivateUsage]


class _Lane:
    """The waiting callers of one tenant and urgency, oldest first; `ticket` orders lanes by their last turn."""

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket
        self.waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()


class FairGate:
    """A limited number of `places` that callers hold with `async with gate:`, shared fairly among tenants.

    Each tenant's callers wait in their own queue, and free places are given to the waiting tenants in turn. A named
    tenant holds at most `most_for_one` places at a time. `reserved` places are only for urgent callers; urgent and
    other callers take turns at the rest. A caller that is cancelled leaves the queue, or gives back the place that it
    was just given. The gate is not reentrant: a task that holds a place and asks for another may deadlock.
    """

    def __init__(self, places: int, most_for_one: int | None = None, reserved: int = 0) -> None:
        if not 0 <= reserved < places or (most_for_one is not None and most_for_one < 1):
            raise ValueError("a gate needs a place that is not reserved, and one for each tenant")
        self.places, self.most_for_one, self.reserved = places, most_for_one, reserved
        self._taken = {False: 0, True: 0}
        self._held: Counter[str] = Counter()
        # By urgency, each in the order of their tickets; a lane without waiting callers is removed.
        self._lanes: dict[bool, OrderedDict[str, _Lane]] = {False: OrderedDict(), True: OrderedDict()}
        self._tickets = 0
        self._inside: dict[asyncio.Task[object] | None, list[Place]] = {}

    @property
    def taken(self) -> int:
        """The number of held places."""
        return self._taken[False] + self._taken[True]

    @property
    def waiting(self) -> int:
        """The number of callers that wait for a place."""
        return sum(len(lane.waiting) for lanes in self._lanes.values() for lane in lanes.values())

    def held_by(self, tenant: str) -> int:
        """Return how many places a tenant holds."""
        return self._held[tenant]

    async def take(self) -> Place:
        """Wait for a place and return it; the holder gives it back, possibly in another task."""
        mine = caller()
        # A free place is given at once to a caller that may have it, so no waiting caller may take one now.
        if self._has_room(urgent=mine.urgent) and not self._has_its_share(mine.tenant):
            self._give(mine)
            return Place(self, mine)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lane(mine).waiting[turn] = None
        try:
            with question_time.waiting():
                await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._freed(mine)
            else:
                self._leave(mine, turn)
            raise
        return Place(self, mine)

    def turn_away(self, fault: Callable[[], Exception]) -> None:
        """Raise an exception in every caller that waits now; later callers wait as usual."""
        for lanes in self._lanes.values():
            for lane in lanes.values():
                for turn in lane.waiting:
                    if not turn.done():
                        turn.set_exception(fault())
            lanes.clear()

    async def __aenter__(self) -> None:
        place = await self.take()
        self._inside.setdefault(asyncio.current_task(), []).append(place)

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = asyncio.current_task()
        places = self._inside[task]
        place = places.pop()
        if not places:
            del self._inside[task]
        place.give_back()

    def _has_room(self, *, urgent: bool) -> bool:
        return self.taken < self.places and (urgent or self._taken[False] < self.places - self.reserved)

    def _has_its_share(self, tenant: str) -> bool:
        return bool(tenant) and self.most_for_one is not None and self._held[tenant] >= self.most_for_one

    def _give(self, to: Caller) -> None:
        self._taken[to.urgent] += 1
        self._held[to.tenant] += 1

    def _freed(self, by: Caller) -> None:
        self._taken[by.urgent] -= 1
        self._held[by.tenant] -= 1
        if not self._held[by.tenant]:
            del self._held[by.tenant]
        while (found := self._next()) is not None:
            lane = self._lanes[found.urgent][found.tenant]
            turn, _ = lane.waiting.popitem(last=False)
            if not turn.done():
                self._give(found)
                turn.set_result(None)
                self._move_back(found)
            elif not lane.waiting:
                # The caller was cancelled and has not run since.
                del self._lanes[found.urgent][found.tenant]

    def _next(self) -> Caller | None:
        """Return the tenant and urgency of the next lane: the one that has waited longest and may have a place."""
        first = list[tuple[int, Caller]]()
        for urgent, lanes in self._lanes.items():
            if self._has_room(urgent=urgent):
                mine = ((lane.ticket, tenant) for tenant, lane in lanes.items() if not self._has_its_share(tenant))
                first += [(ticket, Caller(tenant, urgent)) for ticket, tenant in islice(mine, 1)]
        return min(first, key=itemgetter(0))[1] if first else None

    def _lane(self, of: Caller) -> _Lane:
        lanes = self._lanes[of.urgent]
        if of.tenant not in lanes:
            self._tickets += 1
            lanes[of.tenant] = _Lane(self._tickets)
        return lanes[of.tenant]

    def _move_back(self, of: Caller) -> None:
        """Move a lane behind all others, or remove it when no caller waits in it."""
        lane = self._lanes[of.urgent].pop(of.tenant)
        if lane.waiting:
            self._tickets += 1
            lane.ticket = self._tickets
            self._lanes[of.urgent][of.tenant] = lane

    def _leave(self, who: Caller, turn: asyncio.Future[None]) -> None:
        lane = self._lanes[who.urgent].get(who.tenant)
        if lane is not None and lane.waiting.pop(turn, self) is None and not lane.waiting:
            del self._lanes[who.urgent][who.tenant]
