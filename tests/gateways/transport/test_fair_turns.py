"""Fair turns: no place is lost or doubled, no tenant has more than its share, and urgent callers find a place."""

import asyncio
import contextlib
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateways.transport.exchanges import to_its_end
from gateways.transport.fair_turns import Caller, FairGate, caller, on_behalf_of


class Visit:
    """One caller at a gate: it enters, stays until it may leave, and records itself while it is inside."""

    def __init__(self, gate: FairGate, inside: list["Visit"], tenant: str, *, urgent: bool = False) -> None:
        self.gate, self.inside, self.tenant, self.urgent = gate, inside, tenant, urgent
        self.leave = asyncio.Event()
        with on_behalf_of(tenant, urgent=urgent):
            self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with self.gate:
            self.inside.append(self)
            try:
                await self.leave.wait()
            finally:
                self.inside.remove(self)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def end(visits: list[Visit]) -> None:
    for visit in visits:
        visit.task.cancel()
    await asyncio.gather(*(visit.task for visit in visits), return_exceptions=True)


STEP = st.tuples(
    st.sampled_from(["come", "come", "leave", "cancel", "leave and cancel"]),
    st.sampled_from(["", "a", "b", "c"]),
    st.booleans(),
    st.integers(0, 30),
    st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(
    places=st.integers(1, 5),
    most=st.none() | st.integers(1, 3),
    reserved=st.integers(0, 2),
    steps=st.lists(STEP, max_size=40),
)
def test_places_are_never_lost_doubled_or_left_free(
    places: int, most: int | None, reserved: int, steps: list[tuple[str, str, bool, int, bool]]
) -> None:
    reserved = min(reserved, places - 1)

    async def run() -> None:
        gate, inside, visits = FairGate(places, most, reserved), list[Visit](), list[Visit]()
        for what, tenant, urgent, which, at_once in steps:
            if what == "come":
                visits.append(Visit(gate, inside, tenant, urgent=urgent))
            elif what == "cancel" and visits:
                visits.pop(which % len(visits)).task.cancel()
            elif what == "leave" and inside:
                inside[which % len(inside)].leave.set()
            elif what == "leave and cancel" and inside and visits:
                # The next caller gets the place at the moment at which it may be cancelled.
                inside[which % len(inside)].leave.set()
                await asyncio.sleep(0)
                visits.pop(which % len(visits)).task.cancel()
            if at_once:
                continue
            await settle()
            waiting = [visit for visit in visits if not visit.task.done() and visit not in inside]
            held = Counter(visit.tenant for visit in inside)
            ordinary = sum(not visit.urgent for visit in inside)
            assert len(inside) == gate.taken <= places
            assert len(waiting) == gate.waiting
            assert ordinary <= places - reserved
            assert most is None or all(number <= most for tenant, number in held.items() if tenant)
            assert all(gate.held_by(tenant) == held[tenant] for tenant in ("", "a", "b", "c"))
            for visit in waiting:
                full = len(inside) == places or (not visit.urgent and ordinary == places - reserved)
                assert full or (most is not None and visit.tenant and held[visit.tenant] >= most)
        await end(visits)
        await settle()
        assert (gate.taken, gate.waiting, inside) == (0, 0, [])

    asyncio.run(run())


async def test_free_places_go_round_the_tenants_and_each_tenant_is_served_in_order() -> None:
    gate, inside, order = FairGate(1), list[Visit](), list[str]()
    first = Visit(gate, inside, "first")
    await settle()
    visits = [Visit(gate, inside, tenant) for tenant in ["a"] * 4 + ["b"] * 2 + ["c"]]
    await settle()
    first.leave.set()
    for _ in visits:
        await settle()
        [now] = inside
        order.append(f"{now.tenant}{[v for v in visits if v.tenant == now.tenant].index(now)}")
        now.leave.set()
    assert order == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]


async def test_a_tenant_with_its_share_waits_while_others_are_served() -> None:
    gate, inside = FairGate(4, most_for_one=2), list[Visit]()
    visits = [Visit(gate, inside, "hostile") for _ in range(100)]
    await settle()
    assert len(inside) == 2
    visits.append(Visit(gate, inside, "honest"))
    await settle()
    assert [visit.tenant for visit in inside] == ["hostile", "hostile", "honest"]
    await end(visits)


async def test_urgent_callers_have_places_that_nobody_else_takes_and_do_not_shut_others_out() -> None:
    gate, inside = FairGate(3, reserved=1), list[Visit]()
    visits = [Visit(gate, inside, "round") for _ in range(10)]
    await settle()
    assert len(inside) == 2
    visits += [Visit(gate, inside, f"buyer {number}", urgent=True) for number in range(10)]
    await settle()
    assert [visit.tenant for visit in inside] == ["round", "round", "buyer 0"]
    for _ in range(6):
        inside[0].leave.set()
        await settle()
    served = [visit.tenant for visit in visits if visit.task.done() or visit in inside]
    assert "buyer 1" in served
    assert served.count("round") > 2
    await end(visits)


async def test_tasks_work_for_the_caller_that_created_them() -> None:
    async def who() -> Caller:
        await asyncio.sleep(0)
        return caller()

    with on_behalf_of("server:1", urgent=True):
        with on_behalf_of("server:2"):
            assert await asyncio.create_task(who()) == Caller("server:2", urgent=True)
            assert await to_its_end(who(), 5.0) == Caller("server:2", urgent=True)
        with on_behalf_of("server:3", urgent=False):
            assert await asyncio.gather(who()) == [Caller("server:3", urgent=False)]
        assert caller() == Caller("server:1", urgent=True)
    assert caller() == Caller()


async def test_a_place_is_given_back_once() -> None:
    gate = FairGate(2)
    place, other = await gate.take(), await gate.take()
    place.give_back()
    place.give_back()
    assert gate.taken == 1
    other.give_back()
    async with gate, asyncio.timeout(5):
        async with gate:
            assert gate.taken == 2
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0), gate:
                await asyncio.sleep(0)
    assert gate.taken == 0


@pytest.mark.parametrize(("places", "most", "reserved"), [(0, None, 0), (2, 0, 0), (2, None, 2)])
def test_a_gate_through_which_nobody_could_go_is_refused(places: int, most: int | None, reserved: int) -> None:
    with pytest.raises(ValueError, match="a gate needs a place"):
        FairGate(places, most, reserved)
