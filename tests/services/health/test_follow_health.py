"""What Health says about how chains are followed."""

from datetime import timedelta

import pytest

from gateways.evm.transfer_logs import COINS, CONTRACTS, WALLETS
from models import Cursor, ProviderState, now, transaction
from services.health import provider_health
from services.health.views import BAD, GOOD, OFF, WARNING
from services.triggers import chain_cursor
from services.triggers.chain_cursor import FollowView
from services.triggers.quarantine import Quarantined
from settings import settings

NOW = now()
CONTRACT = "0x" + "c0" * 20


def view(kind: str = CONTRACTS, slices: int = 1) -> FollowView:
    return FollowView("base", kind, 41_000_100, 3, NOW, None, slices)


def test_a_contract_in_quarantine_is_said_with_its_reason_and_time() -> None:
    rests = [Quarantined(1, chain, CONTRACT, NOW, NOW + timedelta(minutes=10)) for chain in ("base", "polygon")]
    contracts, wallets = provider_health.lag([view(), view(WALLETS)], NOW, rests)
    assert contracts.state == WARNING
    assert contracts.text.count("is not followed for 10 minutes more") == 1
    assert "more logs in a block than nodes give" in contracts.text
    assert wallets.state == GOOD


def test_wallets_that_take_turns_are_said() -> None:
    few, coins = provider_health.lag([view(WALLETS), view(COINS)], NOW)
    (many,) = provider_health.lag([view(WALLETS, slices=7)], NOW)
    assert "members' wallets on Base are followed up to block 41,000,100" in few.text
    assert few.text.startswith("For rules about any NFT,")
    assert coins.text.startswith("For rules about coins, members' wallets on Base are followed up to block 41,000,100")
    assert (few.kind, coins.kind) == (WALLETS, COINS)
    assert "turns" not in few.text
    assert "read in 7 turns" in many.text


def answers(*states: str) -> dict[str, ProviderState]:
    return {
        f"base:{place}": ProviderState(provider=f"base:{place}", state=state, since=NOW, checked_at=NOW)
        for place, state in enumerate(states)
    }


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (("down", "busy"), {"base"}), (("down", "down"), {"base"}), (("stale", "confused"), {"base"}),
        (("down", "ok"), set()), (("ok", "ok"), set()), ((), set()),
    ],
)  # fmt: skip
def test_a_chain_is_unreadable_while_none_of_its_nodes_answers_as_it_should(
    monkeypatch: pytest.MonkeyPatch, states: tuple[str, ...], expected: set[str]
) -> None:
    monkeypatch.setenv("RPC_BASE", "http://one.example http://two.example")
    settings.cache_clear()
    assert provider_health.unreadable(answers(*states), ["base", "polygon"], NOW) == expected
    assert provider_health.unreadable(answers(*states), ["base"], NOW + timedelta(days=1)) == set(), "too old to know"
    settings.cache_clear()


def test_while_a_chain_is_unreadable_nothing_says_how_far_behind_its_newest_block_it_is() -> None:
    (works,) = provider_health.lag([view()], NOW)
    assert (works.state, "3 blocks behind its newest" in works.text) == (GOOD, True)
    for shown in provider_health.lag([view(), view(WALLETS), view(COINS)], NOW, unreadable=frozenset({"base"})):
        assert shown.state == BAD
        assert shown.text == (
            "Base was last read up to block 41,000,100. None of its nodes answers as it should, so newer blocks cannot "
            "be read."
        )
    (late,) = provider_health.lag([view()], NOW + timedelta(minutes=31), unreadable=frozenset({"base"}))
    assert "Nothing was read for 31 minutes." in late.text
    assert "sweep" not in late.text, "which cannot read the chain either"


def test_a_chain_that_is_polled_rarely_is_late_only_after_some_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLLOW_SECONDS_BASE", "600")
    settings.cache_clear()
    (in_time,) = provider_health.lag([view()], NOW + timedelta(minutes=29))
    (late,) = provider_health.lag([view()], NOW + timedelta(minutes=31))
    assert (in_time.state, late.state) == (GOOD, WARNING)
    settings.cache_clear()


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("chain", "name"), [("base", "FOLLOW_SECONDS_BASE"), ("solana", "SOLANA_FOLLOW_REQUESTS")])
async def test_a_chain_that_is_left_to_the_sweeps_is_named_and_never_late(
    monkeypatch: pytest.MonkeyPatch, chain: str, name: str
) -> None:
    async with transaction() as db:
        db.add(Cursor(chain=chain, block=7, head=9, updated_at=NOW - timedelta(days=1)))
    async with transaction() as db:
        assert [one.chain for one in await chain_cursor.views(db)] == [chain]
        monkeypatch.setenv(name, "0")
        settings.cache_clear()
        assert await chain_cursor.views(db) == []
    (said,) = provider_health.left_to_sweeps({"base", "ethereum", "solana"})
    assert (said.state, said.chain) == (OFF, chain)
    assert f"{chain.title()} is not followed" in said.text
    settings.cache_clear()
