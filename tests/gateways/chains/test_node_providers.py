"""Nodes of one provider count as one; the operator's own nodes do not."""

from collections.abc import Iterator

import pytest

from gateways.chains.node_providers import independent, origin
from settings import settings


@pytest.fixture(autouse=True)
def fresh_settings() -> Iterator[None]:
    yield
    settings.cache_clear()


@pytest.mark.parametrize(
    ("urls", "origins"),
    [
        ("https://base.one.example/v2/a https://base.two.example/v2/a", [0, 1]),
        ("https://base.one.example/v2/a https://base.one.example/v2/b", [0, 0]),
        ("https://eu.base.one.example https://two.example https://US.one.example:8443/key", [0, 1, 0]),
        ("https://mainnet.helius-rpc.com/?api-key=a https://rpc.helius-rpc.com/?api-key=b", [0, 0]),
        ("https://a.one.co.uk https://a.two.co.uk https://b.one.co.uk", [0, 1, 0]),
        ("http://localhost:8545 http://localhost:8546", [0, 1]),
        ("http://10.0.0.1:8545 http://10.0.0.1:8546 http://[::1]:8545 http://[::1]:8546", [0, 1, 2, 3]),
        ("http://geth:8545 http://erigon:8545", [0, 1]),
        ("http://geth.nodes.svc.cluster.local:8545 http://erigon.nodes.svc.cluster.local:8545", [0, 1]),
    ],
)
def test_nodes_of_one_provider_have_one_origin(monkeypatch: pytest.MonkeyPatch, urls: str, origins: list[int]) -> None:
    monkeypatch.setenv("RPC_BASE", urls)
    settings.cache_clear()
    assert [origin("base", place) for place in range(len(origins))] == origins
    assert independent("base") == len(set(origins))
    assert origin("base", 9) == 9, "a node that the settings do not have"
