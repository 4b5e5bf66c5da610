"""What Health shows of a marketplace's limit, from the notes that processes share."""

from datetime import UTC, datetime, timedelta

import pytest

from gateways.marketplaces.quota import SHARES, Quota, Use
from models import now, transaction
from services.health import quotas
from services.health.views import QuotaHealth
from services.runtime.marketplace_limit_sharing import exchange
from tests.services.runtime.test_marketplace_limit_sharing import LIMIT, Key

pytestmark = pytest.mark.usefixtures("database")


async def shown(at: datetime | None = None) -> list[QuotaHealth]:
    async with transaction() as db:
        return list(await quotas.view(db, at or now()))


def share(line: QuotaHealth, use: str) -> tuple[int, datetime | None]:
    """Return how many reads a use may make, and when it may read again."""
    return next((one.left, one.back_at) for one in line.shares if one.use == use)


async def test_nothing_is_shown_of_a_marketplace_that_was_never_asked() -> None:
    assert await shown() == []


async def test_the_reads_that_are_left_are_shown_with_the_time_when_all_are_back() -> None:
    quota, key = Quota("OpenSea"), Key()
    key.reads(quota, Use.PROOF, 12)
    await exchange(quota)
    (line,) = await shown()
    back = datetime.fromtimestamp(key.resets, UTC)
    assert (line.state, line.left, line.reads, line.mend) == ("good", LIMIT - 12, LIMIT, None)
    assert line.back_at is not None
    assert abs(line.back_at - back) < timedelta(seconds=1)
    assert line.text.startswith(f"588 of 600 reads are left; all are back at {back:%H:%M} UTC.")
    assert share(line, "proof")[0] > share(line, "rules")[0] > share(line, "lookup")[0] > 0
    assert f"verifying wallets by bio up to {share(line, 'proof')[0]}" in line.text


async def test_a_use_without_reads_says_when_it_may_read_again_and_the_others_go_on() -> None:
    quota, key = Quota("OpenSea"), Key()
    key.reads(quota, Use.RULES)
    await exchange(quota)
    (line,) = await shown()
    left, back = share(line, "rules")
    assert (line.state, left) == ("warning", 0)
    assert back is not None
    assert now() < back <= datetime.fromtimestamp(key.resets, UTC) + timedelta(seconds=1)
    assert f"Rules about traits and any NFT: none until {back:%H:%M} UTC." in line.text
    assert share(line, "proof") == (pytest.approx(LIMIT * (SHARES[Use.PROOF] + SHARES[Use.AGAIN]), abs=4), None)
    assert line.mend is not None


async def test_when_all_is_used_up_members_are_pointed_to_the_other_proof_until_the_window_ends() -> None:
    quota, key = Quota("OpenSea"), Key()
    for use in (Use.RULES, Use.LOOKUP, Use.PROOF):
        key.reads(quota, use)
    await exchange(quota)
    (line,) = await shown()
    assert (line.state, share(line, "proof")[0]) == ("warning", 0)
    assert "can be verified by a transaction" in line.text
    (line,) = await shown(datetime.fromtimestamp(key.resets, UTC) + timedelta(seconds=2))
    assert (line.state, line.left, line.back_at) == ("good", LIMIT, None)
    assert all(one.left > 0 and one.back_at is None for one in line.shares)
    assert await shown(now() + timedelta(days=2)) == [], "the key may be another one by then"


async def test_a_limit_that_we_count_ourselves_is_shown_too() -> None:
    quota = Quota("Magic Eden", (120, 60.0), {})
    for _ in range(120):
        with quota.one_read(Use.LOOKUP):
            quota.heed(Use.LOOKUP, 200, {})
    await exchange(quota)
    (line,) = await shown()
    assert (line.provider, line.left, line.reads, line.state) == ("magic eden", 0, 120, "warning")
    assert [one.use for one in line.shares] == ["lookup"]
