"""What Health says of how chains are followed."""

from datetime import timedelta

from gateways.evm_transfers import CONTRACTS, WALLETS
from models import now
from services import provider_health
from services.following import FollowView
from services.health_views import GOOD, WARNING
from services.quarantine import Quarantined

NOW = now()
CONTRACT = "0x" + "c0" * 20


def view(kind: str = CONTRACTS, slices: int = 1) -> FollowView:
    return FollowView("base", kind, 100, 3, NOW, None, slices)


def test_a_contract_in_quarantine_is_said_with_its_reason_and_time() -> None:
    rests = [Quarantined(1, chain, CONTRACT, NOW, NOW + timedelta(minutes=10)) for chain in ("base", "polygon")]
    contracts, wallets = provider_health.lag([view(), view(WALLETS)], NOW, rests)
    assert contracts.state == WARNING
    assert contracts.text.count("is not followed for 10 minutes more") == 1
    assert "more logs in a block than nodes give" in contracts.text
    assert wallets.state == GOOD


def test_wallets_that_take_turns_are_said() -> None:
    (few,) = provider_health.lag([view(WALLETS)], NOW)
    (many,) = provider_health.lag([view(WALLETS, slices=7)], NOW)
    assert "members' wallets on Base are followed up to block 100" in few.text
    assert "turns" not in few.text
    assert "read in 7 turns" in many.text
