"""A marketplace's limit for one key: who may use how much of it, over an hour that takes no time."""

import asyncio
import time
from collections import Counter

import pytest

from gateways.errors import ProviderBusy
from gateways.quota import LONGEST_PAUSE, Quota, Use
from gateways.turns import on_behalf_of
from tests.gateways.clockwork import run

LIMIT, HOUR = 600, 3600.0


class Key:
    """What a marketplace counts for one key, and what it says of that in its answers' headers."""

    def __init__(self) -> None:
        self.ends = asyncio.get_running_loop().time() + HOUR
        self.left = LIMIT
        self.used: Counter[object] = Counter()

    def asked(self, quota: Quota, use: Use, tenant: str = "") -> float:
        """One read: 0, or in how many seconds the quota lets the next one pass. Nothing refused is ever sent."""
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
        """How many reads pass at once."""
        passed = 0
        while not self.asked(quota, use, tenant):
            passed += 1
        return passed


def test_rules_and_lookups_leave_proofs_their_share() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        assert key.greedily(quota, Use.RULES) == pytest.approx(0.4 * LIMIT, abs=3)
        assert key.greedily(quota, Use.LOOKUP) == pytest.approx(0.2 * LIMIT, abs=3)
        assert key.greedily(quota, Use.PROOF) == pytest.approx(0.4 * LIMIT, abs=3)
        assert key.left == 0
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
        assert sum(shares) == pytest.approx(0.4 * LIMIT, abs=3)
        assert max(shares) - min(shares) <= 10

    run(work())


def test_a_server_that_comes_late_gets_what_is_left_until_it_has_had_as_much() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        first = key.greedily(quota, Use.RULES, "server:1")
        assert first == pytest.approx(0.4 * LIMIT, abs=3), "alone it need not share"
        for _ in range(1200):
            await asyncio.sleep(1)
            key.asked(quota, Use.RULES, "server:1")
            key.asked(quota, Use.RULES, "server:2")
        assert key.used["server:1"] == first
        assert key.used["server:2"] > 100

    run(work())


def test_processes_need_not_count_for_each_other() -> None:
    async def work() -> None:
        one, other, key = Quota("OpenSea"), Quota("OpenSea"), Key()
        spent = key.greedily(one, Use.RULES)
        assert key.greedily(other, Use.RULES) <= 1, "its first answer says what is left"
        assert key.greedily(other, Use.LOOKUP) == pytest.approx(0.2 * LIMIT, abs=3)
        assert spent == pytest.approx(0.4 * LIMIT, abs=3)

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
        assert waits == [pytest.approx(120), pytest.approx(60), pytest.approx(60)]
        await asyncio.sleep(121)
        assert [key.asked(quota, use) for use in Use] == [0.0] * 3

    run(work())


def test_a_limit_that_was_seen_long_ago_is_looked_at_again() -> None:
    async def work() -> None:
        quota, key = Quota("OpenSea"), Key()
        key.greedily(quota, Use.PROOF)
        assert key.asked(quota, Use.PROOF) == pytest.approx(LONGEST_PAUSE, abs=1)
        key.left = LIMIT  # the key was replaced by one that is allowed more
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
