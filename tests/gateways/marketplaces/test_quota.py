"""A marketplace's limit for one key: how it is shared among the uses of an hour, on a clock that jumps."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from gateways.marketplaces.quota import (
    LONGEST_PAUSE,
    LOOKED_UP_BY_ONE,
    MOST_ASKED,
    SHARES,
    SLOWEST,
    Outlook,
    Quota,
    QuotaStanding,
    Use,
)
from gateways.transport import corrected_clock
from gateways.transport.errors import ProviderBusy
from gateways.transport.fair_turns import on_behalf_of
from tests.gateways.clockwork import run

LIMIT, HOUR = 600, 3600.0
FREE = 1 - sum(SHARES.values())
"""The part of a window that is reserved for no use."""


def part(*uses: Use, free: bool = False) -> object:
    """Return about how many reads are reserved for these uses, plus the unreserved part if `free`."""
    return pytest.approx(LIMIT * (sum(SHARES[use] for use in uses) + FREE * free), abs=3)


class Key:
    """What a marketplace counts for one key, and reports in its answers' headers."""

    def __init__(self) -> None:
        self.ends = asyncio.get_running_loop().time() + HOUR
        self.left = LIMIT
        self.used: Counter[object] = Counter()

    def asked(self, quota: Quota, use: Use, tenant: str = "") -> float:
        """Try one read: return 0, or the seconds until the quota lets the next one pass. A refused read is not sent."""
        with on_behalf_of(tenant):
            try:
                with quota.one_read(use):
                    quota.heed(use, 200, self._answer())
            except ProviderBusy as busy:
                return busy.retry_after or 0.0
        self.used[use] += 1
        self.used[tenant] += 1
        return 0.0

    def _answer(self) -> dict[str, str]:
        now = asyncio.get_running_loop().time()
        if now >= self.ends:
            self.left, self.ends = LIMIT, now + HOUR
        assert self.left > 0, "more was sent than the key has"
        self.left -= 1
        limits = {"limit": LIMIT, "remaining": self.left, "reset": time.time() + self.ends - now}
        return {f"x-ratelimit-{name}": str(value) for name, value in limits.items()}

    def greedily(self, quota: Quota, use: Use, tenant: str = "") -> int:
        """Return how many reads pass in a row."""
        passed = 0
        while not self.asked(quota, use, tenant):
            passed += 1
        return passed


@pytest.mark.parametrize("first", Use)
def test_a_greedy_use_leaves_every_other_use_its_part(first: Use) -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        # Proofs may use the part reserved for looks that nobody requested.
        own = {Use.PROOF, Use.AGAIN} if first is Use.PROOF else {first}
        assert key.greedily(quota, first) == part(*own, free=True)
        for use in set(Use) - own:
            reads = key.greedily(quota, use) if use is not Use.PROOF else 0
            assert reads == (part(use) if use is not Use.PROOF else 0), use.name
        assert key.greedily(quota, Use.PROOF) == (part(Use.PROOF) if Use.PROOF not in own else 0)
        assert key.left <= 3
        await asyncio.sleep(HOUR)
        assert key.asked(quota, Use.RULES) == 0.0

    run(work())


def test_what_proofs_do_not_use_is_not_lost() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        ends = key.ends
        while (left := ends - asyncio.get_running_loop().time()) > 1:
            await asyncio.sleep(max(1.0, key.asked(quota, Use.RULES)))
            if left > HOUR / 2 and key.used[Use.PROOF] < 20:
                assert key.asked(quota, Use.PROOF) == 0.0
        assert key.used[Use.RULES] > 0.9 * LIMIT

    run(work())


def test_servers_share_what_rules_may_use() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        for _ in range(LIMIT):
            for tenant, reads in (("server:1", 9), ("server:2", 1), ("server:3", 1)):
                for _ in range(reads):
                    key.asked(quota, Use.RULES, tenant)
        shares = [key.used[f"server:{number}"] for number in (1, 2, 3)]
        assert sum(shares) == part(Use.RULES, free=True)
        assert max(shares) - min(shares) <= 10

    run(work())


def test_a_server_that_comes_late_gets_what_is_left_until_it_has_had_as_much() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        first = key.greedily(quota, Use.RULES, "server:1")
        assert first == part(Use.RULES, free=True), "alone it need not share"
        for _ in range(3500):
            await asyncio.sleep(1)
            key.asked(quota, Use.RULES, "server:1")
            key.asked(quota, Use.RULES, "server:2")
            assert key.used["server:1"] <= max(first, key.used["server:2"] + 5)
        assert key.used["server:2"] > 100

    run(work())


class Board:
    """The store in which processes share what they know, as in the database."""

    def __init__(self) -> None:
        self.rows: dict[int, QuotaStanding] = {}

    def meet(self, *quotas: Quota) -> None:
        for quota in quotas:
            self.rows |= {one.limit: one for one in quota.exchange(self.rows)}


def test_processes_share_one_limit_and_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    corrected_clock.forget()

    async def work() -> None:
        quotas, key, board = [Quota("OpenSea") for _ in range(3)], Key(), Board()
        one, other, third = quotas
        spent = key.greedily(one, Use.RULES)
        board.meet(*quotas, *quotas)
        assert key.greedily(other, Use.RULES) <= 1, "the rules' part is used up for all"
        assert (key.greedily(third, Use.LOOKUP), key.greedily(other, Use.AGAIN)) == (part(Use.LOOKUP), part(Use.AGAIN))
        assert key.greedily(one, Use.PROOF) == part(Use.PROOF)
        board.meet(*quotas, *quotas)
        assert key.greedily(other, Use.PROOF) <= 2, "what was left of all parts"
        board.meet(*quotas, *quotas)
        assert [quota.outlook(Use.PROOF).wait > 0 for quota in quotas] == [True] * 3
        assert spent == part(Use.RULES, free=True)
        monkeypatch.setattr(corrected_clock, "_wall", lambda: datetime.now(UTC) + timedelta(seconds=HOUR + 1))
        await asyncio.sleep(HOUR + 1)
        board.meet(*quotas, *quotas)
        assert [quota.outlook(Use.PROOF) for quota in quotas] == [Outlook()] * 3

    run(work())


def test_a_process_that_begins_late_knows_what_the_others_left() -> None:
    async def work() -> None:
        one, late, key, board = Quota("OpenSea"), Quota("OpenSea"), Key(), Board()
        for use in (Use.RULES, Use.PROOF):
            key.greedily(one, use)
        board.meet(one, late)
        left = key.left
        assert key.asked(late, Use.PROOF) > 0
        assert key.asked(late, Use.RULES) > 0
        assert key.left == left, "not even one read was sent to find it out"

    run(work())


def test_reads_are_counted_where_no_header_states_them() -> None:
    async def work() -> None:
        quotas, board = [Quota("Magic Eden", (120, 60.0), {}) for _ in range(2)], Board()
        one, other = quotas

        def reads(quota: Quota, most: int) -> int:
            for passed in range(most):
                try:
                    with quota.one_read(Use.LOOKUP):
                        quota.heed(Use.LOOKUP, 200, {})
                except ProviderBusy:
                    return passed
            return most

        assert reads(one, 70) == 70
        board.meet(one, other)
        assert reads(other, 70) == 50
        board.meet(other, one)
        assert reads(one, 1) == 0
        await asyncio.sleep(61)
        assert reads(one, 200) == 120

    run(work())


def test_one_person_does_not_use_up_what_all_need() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        assert key.greedily(quota, Use.PROOF, "user:1") == pytest.approx(
            MOST_ASKED + LIMIT * (SHARES[Use.AGAIN] + FREE), abs=3
        )
        for person in range(2, 40):
            assert key.greedily(quota, Use.PROOF, f"user:{person}") == MOST_ASKED

    run(work())


def test_one_persons_lookups_leave_some_to_the_next() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        own = LIMIT * SHARES[Use.LOOKUP] * LOOKED_UP_BY_ONE
        # While reads are left that are reserved for nothing, everybody may use those too.
        assert key.greedily(quota, Use.LOOKUP, "user:1") == pytest.approx(own + LIMIT * FREE, abs=3)
        assert key.greedily(quota, Use.LOOKUP, "user:2") == pytest.approx(own, abs=3)
        # The product's own lookups are nobody's.
        quota, key = Quota("OpenSea"), Key()
        assert key.greedily(quota, Use.LOOKUP) == part(Use.LOOKUP, free=True)

    run(work())


def test_looks_come_more_seldom_the_further_they_are_ahead() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        assert quota.outlook(Use.AGAIN) == Outlook(), "nothing is known yet"
        key.asked(quota, Use.AGAIN)
        assert quota.outlook(Use.AGAIN).stretch == pytest.approx(1, abs=0.05)
        stretches = list[float]()
        while not key.asked(quota, Use.AGAIN):
            stretches.append(quota.outlook(Use.AGAIN).stretch)
        assert stretches == sorted(stretches)
        assert stretches[len(stretches) // 2] == pytest.approx(2, abs=0.2)
        assert quota.outlook(Use.AGAIN).stretch == SLOWEST
        assert quota.outlook(Use.AGAIN).wait > 60

    run(work())


def test_a_refusal_keeps_those_quiet_who_come_after_the_one_that_was_refused() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        quota.heed(Use.RULES, 429, {"retry-after": "120"})
        assert key.asked(quota, Use.RULES) == pytest.approx(120)
        assert (key.asked(quota, Use.LOOKUP), key.asked(quota, Use.PROOF)) == (0.0, 0.0)
        quota.heed(Use.LOOKUP, 599, {})
        assert key.asked(quota, Use.LOOKUP) == pytest.approx(1)
        quota.heed(Use.PROOF, 429, {"retry-after": "60"})
        waits = [key.asked(quota, use) for use in Use]
        assert waits == [pytest.approx(120), *[pytest.approx(60)] * 3]
        await asyncio.sleep(121)
        assert [key.asked(quota, use) for use in Use] == [0.0] * 4

    run(work())


def test_a_limit_that_was_seen_long_ago_is_tried_again() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        key.greedily(quota, Use.PROOF)
        assert key.asked(quota, Use.PROOF) == pytest.approx(LONGEST_PAUSE, abs=1)
        key.left = LIMIT  # the key was replaced by one with a higher limit
        await asyncio.sleep(LONGEST_PAUSE + 1)
        assert key.asked(quota, Use.PROOF) == 0.0

    run(work())


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ratelimit-limit": "x", "x-ratelimit-remaining": "0", "x-ratelimit-reset": ""},
        {"x-ratelimit-limit": "0", "x-ratelimit-remaining": "5", "x-ratelimit-reset": "1"},
        {"x-ratelimit-limit": "nan", "x-ratelimit-remaining": "inf", "x-ratelimit-reset": "1e300"},
        {"x-ratelimit-limit": "600", "x-ratelimit-remaining": "599", "x-ratelimit-reset": "1"},
    ],
)
def test_headers_that_say_nothing_sensible_stop_nothing(headers: dict[str, str]) -> None:
    async def work() -> None:
        quota = Quota("OpenSea")
        for use in Use:
            for _ in range(5):
                with quota.one_read(use):
                    quota.heed(use, 200, headers)

    run(work())
