"""An index of Solana's assets whose answers a test can alter, and assets for it."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateways.solana.client import SolanaChains
from gateways.solana.node import SolanaNodes
from gateways.transport.base58 import decode, encode
from tests.gateways.solana_stand_in import StandIn, standing_in

SOLANA = "solana"


def key(number: int) -> str:
    """Return an address; a greater number comes later in byte order."""
    return encode(number.to_bytes(32, "big"))


COLLECTION, OWNER, OTHER = key(2**200), key(2**201), key(2**202)
TOKENS = [key((index + 1) << 240) for index in range(60)]


def asset(id_: str, owner: str = OWNER, **changed: Any) -> dict[str, Any]:
    return {
        "interface": "ProgrammableNFT",
        "id": id_,
        "content": {"json_uri": "", "metadata": {"name": "An asset"}},
        "grouping": [{"group_key": "collection", "group_value": COLLECTION}],
        "ownership": {"owner": owner, "frozen": False, "delegated": False, "ownership_model": "single"},
        "burnt": False,
        **changed,
    }


class Index:
    """The DAS interface to a list of assets; a test can alter each of its answers."""

    def __init__(self, node: StandIn, *assets: dict[str, Any]) -> None:
        self.node, self.assets = node, list(assets)
        self.known: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}
        self.bend: Callable[[list[Any]], list[Any]] = lambda items: items
        self.ignores: tuple[str, ...] = ()
        node.says |= {
            "getAssetsByOwner": lambda p: self.page(p, lambda one: one["ownership"]["owner"] == p["ownerAddress"]),
            "getAssetsByGroup": lambda p: self.page(p, lambda one: _in(one, p["groupValue"])),
            "getAssetBatch": lambda p: [self.known.get(id_) for id_ in p["ids"]],
            "getTokenAccountsByOwner": lambda _: {"context": {"slot": 1}, "value": []},
        }

    def page(self, params: Any, belongs: Callable[[Any], bool]) -> Any:
        items = sorted((one for one in self.assets if belongs(one)), key=lambda one: decode(one["id"]) or b"")
        for name, keeps in (("after", lambda a, b: a > b), ("before", lambda a, b: a < b)):
            if name in params and name not in self.ignores:
                bound = decode(params[name]) or b""
                items = [one for one in items if keeps(decode(one["id"]) or b"", bound)]
        items = self.bend(items[: params["limit"]])
        return {"total": len(items), "limit": params["limit"], "items": items, **self.extra}


def _in(one: Any, collection: str) -> bool:
    return any(group["group_value"] == collection for group in one["grouping"])


@pytest.fixture
async def node() -> AsyncIterator[StandIn]:
    async with standing_in() as made:
        yield made


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateways.solana.client.SLOTS_BETWEEN", 0)


@pytest.fixture
async def chains(node: StandIn) -> AsyncIterator[SolanaChains]:
    made = SolanaChains(SolanaNodes([node.url], request_seconds=2, deadline=8))
    yield made
    await made.close()
