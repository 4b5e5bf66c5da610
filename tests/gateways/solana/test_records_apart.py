"""A second reading of tokens' records comes from an index of another provider than the first one."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateways.solana import token_records
from gateways.solana.das_assets import Asset
from gateways.solana.node import SolanaNode, SolanaNodes
from gateways.solana.token_records import SolanaRecords
from gateways.transport.errors import ProviderConfused
from settings import settings

MINT = "J1S9H3QjnRtBbbuD4HjPV6RpRhwuk4zKbxsnCHuTgh9w"
NODES = ("https://a.one.example", "https://b.one.example", "https://two.example")


class Indexes:
    """The nodes of the settings in their order, each of which answers."""

    def __init__(self, count: int) -> None:
        self.asked: list[int] = []
        self._count = count

    async def first(self, ask: Any) -> Any:
        for place in range(self._count):

            async def head() -> None: ...

            node = SimpleNamespace(index=place, source=f"Solana node {place + 1}", name="an index", head=head)
            try:
                found = await ask(node)
            except ProviderConfused:
                continue
            self.asked.append(place)
            return found
        raise ProviderConfused("Solana", "no other index")


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(node: SolanaNode, mints: list[str], **_: bool) -> dict[str, Asset | None]:
        return {}

    monkeypatch.setattr(token_records, "assets", nothing)


@pytest.mark.parametrize(
    ("nodes", "apart_from", "asked"),
    [
        (NODES, "", [0]), (NODES, "Solana node 1", [2]), (NODES, "Solana node 2", [2]), (NODES, "Solana node 3", [0]),
        (NODES[:2], "Solana node 1", []), (("http://10.0.0.1:1", "http://10.0.0.1:2"), "Solana node 1", [1]),
    ],
)  # fmt: skip
async def test_an_index_of_the_same_provider_is_no_other_one(
    records: None, monkeypatch: pytest.MonkeyPatch, nodes: tuple[str, ...], apart_from: str, asked: list[int]
) -> None:
    monkeypatch.setenv("RPC_SOLANA", " ".join(nodes))
    settings.cache_clear()
    indexes = Indexes(len(nodes))
    read = SolanaRecords(cast(SolanaNodes, indexes)).records("solana", MINT, [MINT], apart_from=apart_from)
    if asked:
        await read
    else:
        with pytest.raises(ProviderConfused):
            await read
    assert indexes.asked == asked
    settings.cache_clear()
