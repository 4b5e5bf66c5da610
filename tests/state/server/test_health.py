"""The titles of the Health tab's lines."""

import pytest

from gateways.evm.transfer_logs import COINS, CONTRACTS, WALLETS
from services.health.views import BAD, GOOD, OFF, WARNING, LagHealth, UnknownReading
from state.server.health import _distance, _waits


@pytest.mark.parametrize(
    ("state", "kind", "behind", "title"),
    [
        (GOOD, CONTRACTS, 0, "ApeChain: up to date"), (GOOD, CONTRACTS, 1, "ApeChain: 1 block behind"),
        (GOOD, WALLETS, 0, "ApeChain, members' wallets: up to date"),
        (WARNING, WALLETS, 240, "ApeChain, members' wallets: 240 blocks behind"),
        (GOOD, COINS, 1, "ApeChain, coins: 1 block behind"),
        (WARNING, CONTRACTS, 240, "ApeChain: 240 blocks behind"), (OFF, "", 0, "ApeChain: not followed"),
        (BAD, CONTRACTS, 3, "ApeChain: cannot be read"),
        (BAD, WALLETS, 0, "ApeChain, members' wallets: cannot be read"),
    ],
)  # fmt: skip
def test_a_followed_chain_is_named_with_its_distance(state: str, kind: str, behind: int, title: str) -> None:
    lag = LagHealth(state=state, text="", chain="apechain", kind=kind, block=7, behind=behind, seconds=1)
    assert _distance(lag) == title


def test_what_could_not_be_read_is_named_by_those_who_wait() -> None:
    titles = [_waits(UnknownReading(state=WARNING, text="", reason="", members=count)) for count in (1, 3)]
    assert titles == ["1 member waits", "3 members wait"]
