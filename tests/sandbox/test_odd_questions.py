"""Whatever a question to a marketplace or a node contains, the answer is one that the real service could give."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest

from sandbox.chains.methods import BLOCK_AT, FROM_A_BLOCK, STATE_AT
from sandbox.chains.plans import PLANS
from sandbox.marketplaces import alchemy
from sandbox.solana.rpc import MOST_IN_A_BATCH
from tests.sandbox.chains import otters as solana
from tests.sandbox.chains.nodes import MELLOW_CATS, Nodes
from tests.sandbox.chains.otters import Otters
from tests.sandbox.conftest import some

ODD_TEXTS = ("-1", "1.5", "1e30", "NaN", "²", "٣", "9" * 5000, "0x1", " 1", "1_0", "\x00", "true", "[]", "")
ODD_VALUES = (
    "null", "true", "-1", "0", "1.5", "1e30", "9" * 5000, '"' + "9" * 5000 + '"', '"²"', '""', "[]", "[1]",
    '["a", {}]', "{}", '{"a": 1}', '"0x"', '"0xzz"', '"-0x1"', f'"0x{"f" * 100}"', '"latest"',
    '{"blockNumber": -1}', '{"blockNumber": 1.5}', '{"blockHash": 1}', '{"blockHash": "0xzz"}',
    '{"commitment": []}', '{"encoding": 1, "dataSlice": 1}', '{"limit": 1.5}', '{"limit": 1e30, "before": []}',
    '{"filters": [1]}', '{"filters": [{"dataSize": 1e30}, {"memcmp": {"offset": -1, "bytes": 1}}]}',
    '{"mint": 1}', '{"programId": []}', '{"encoding": "base64", "dataSlice": {"offset": -1, "length": 1.5}}',
)  # fmt: skip
ANSWERS = (200, 400, 404)
"""A limit's 429 would hide what the service says of the question."""
SOLANA_METHODS = (
    "getSlot", "getBlockHeight", "getBlockTime", "getLatestBlockhash", "getBalance", "getAccountInfo",
    "getMultipleAccounts", "getProgramAccounts", "getTokenLargestAccounts", "getTokenSupply",
    "getTokenAccountBalance", "getTokenAccountsByOwner", "getSignaturesForAddress", "getSignatureStatuses",
    "getTransaction",
)  # fmt: skip
DAS_FIELDS = (
    "limit", "page", "before", "after", "sortBy", "options", "ids", "id", "ownerAddress", "groupKey", "groupValue",
    "tokenType", "grouping", "burnt", "cursor",
)  # fmt: skip


@pytest.fixture
def markets(nodes: Nodes) -> Iterator[Nodes]:
    """The same sandbox, whose marketplaces answer any number of requests; the plans of its nodes stay."""
    for target in ("opensea", "magiceden", "alchemy"):
        body = {"target": target, "left": 1_000_000, "seconds": 600}
        assert nodes.http.put("/control/limits", json=body).status_code == 200
    yield nodes
    nodes.http.delete("/control/limits")


@pytest.fixture
async def otters(tmp_path: Path) -> AsyncIterator[Otters]:
    async with solana.running(tmp_path / "sandbox") as made:
        yield made


def odd_cursors() -> list[str]:
    """Return odd texts, and odd places in the form of a cursor."""
    return [*ODD_TEXTS, *(base64.urlsafe_b64encode(text.encode()).decode() for text in ODD_TEXTS)]


def test_a_marketplace_refuses_odd_numbers(markets: Nodes):
    cats = markets.collection(MELLOW_CATS)["contract"]
    otters = markets.world()["chains"]["solana"]["collections"][0]
    opensea, eden, key = "/opensea/api/v2", "/magiceden/v2", f"/alchemy/base-mainnet/nft/v3/{alchemy.KEY}"
    carol = markets.wallet("carol")
    asked = [
        *((f"{opensea}/collection/{MELLOW_CATS}/nfts", name) for name in ("limit", "next", "traits")),
        *((f"{opensea}/chain/base/account/{carol}/nfts", name) for name in ("limit", "next", "collection")),
        (f"{opensea}/collections/{MELLOW_CATS}/holders", "limit"),
        *((f"{eden}/wallets/{otters['contract']}/tokens", name) for name in ("offset", "limit", "mcc_address")),
        *((f"{eden}/collections", name) for name in ("offset", "limit")),
        *((f"{key}/getNFTsForOwner?owner={carol}", name) for name in ("pageSize", "pageKey")),
        *((f"{key}/getOwnersForContract?contractAddress={cats}", name) for name in ("pageSize", "pageKey")),
    ]
    for place, (path, name) in enumerate(asked):
        assert markets.http.get(path, headers={"X-API-KEY": "sandbox-opensea-key"}).status_code in ANSWERS, path
        for odd in some(odd_cursors(), place):
            query = f"{path}{'&' if '?' in path else '?'}{name}={quote(odd)}"
            answer = markets.http.get(query, headers={"X-API-KEY": "sandbox-opensea-key"})
            assert answer.status_code in ANSWERS, query[:200]


def test_an_odd_number_of_a_token_is_none(markets: Nodes):
    cats = markets.collection(MELLOW_CATS)["contract"]
    nft = f"/opensea/api/v2/chain/base/contract/{cats}/nfts/{{}}"
    paths = [
        nft, f"{nft}/owners",
        f"/opensea/item/base/{cats}/{{}}", f"/magiceden/item-details/base/{cats}/{{}}", f"/metadata/base/{cats}/{{}}",
        f"/metadata/base/{cats}/{{}}/image.svg", f"/opensea/item/solana/{cats}/{{}}", "/magiceden/v2/tokens/{}",
    ]  # fmt: skip
    for path in paths:
        for odd in ODD_TEXTS:
            answer = markets.http.get(path.format(quote(odd)), headers={"X-API-KEY": "sandbox-opensea-key"})
            assert answer.status_code in ANSWERS, path + odd[:50]


def test_a_batch_at_a_marketplace_refuses_odd_values(markets: Nodes):
    cats = markets.collection(MELLOW_CATS)["contract"]
    key = {"X-API-KEY": "sandbox-opensea-key"}
    for odd in ODD_VALUES:
        one = f'{{"chain": "base", "contract_address": "{cats}", "token_id": {odd}}}'
        for body in (f'{{"identifiers": [{one}]}}', f'{{"identifiers": {odd}}}', odd):
            answer = markets.http.post("/opensea/api/v2/nfts/batch", content=body, headers=key)
            assert answer.status_code in ANSWERS, body[:200]
        answer = markets.http.post("/opensea/api/v2/collections/batch", content=f'{{"slugs": {odd}}}', headers=key)
        assert answer.status_code in ANSWERS, odd[:200]


def asked(method: str, params: str) -> str:
    return f'{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {params}}}'


def together(calls: list[str], most: int) -> Iterator[list[str]]:
    """Yield the calls in batches of at most so many; a text that nobody can read as JSON would spoil its batch."""
    readable = [call for call in calls if is_readable(call)]
    yield from ([call] for call in calls if not is_readable(call))
    yield from (readable[at : at + most] for at in range(0, len(readable), most))


def is_readable(text: str) -> bool:
    """Return whether the sandbox can read the text as JSON."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def sent(calls: list[str]) -> str:
    return calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"


def check(answer: httpx.Response, calls: list[str]) -> None:
    """Assert that a node answers each of the calls in JSON-RPC."""
    assert answer.status_code == 200, f"{answer.status_code} for one of {[call[:200] for call in calls]}"
    said = answer.json()
    each = [said] if len(calls) == 1 else said
    for one, call in zip(each, calls, strict=True):
        assert "result" in one or isinstance(one["error"]["code"], int), call[:200]


@pytest.mark.parametrize("method", sorted({*STATE_AT, *BLOCK_AT, *FROM_A_BLOCK, "eth_getLogs"}))
def test_a_node_of_the_evm_refuses_odd_parameters(nodes: Nodes, method: str):
    place = STATE_AT.get(method, BLOCK_AT.get(method, 0))
    usual = ['"0x' + "ab" * 20 + '"'] * 3
    calls = [
        asked(method, params)
        for odd in ODD_VALUES
        for params in (f"[{', '.join([*usual[:place], odd])}]", odd, f'[{{"fromBlock": {odd}, "toBlock": {odd}}}]')
    ]
    for batch in together(calls, PLANS["base"].batch or 1):
        check(nodes.http.post("/rpc/base", content=sent(batch)), batch)


@pytest.mark.parametrize("method", SOLANA_METHODS)
async def test_a_node_of_solana_refuses_odd_parameters(otters: Otters, method: str):
    address = '"' + (await otters.collection())["contract"] + '"'
    calls = [
        asked(method, params)
        for odd in ODD_VALUES
        for params in (odd, f"[{odd}]", f"[{address}, {odd}]", f"[{address}, {odd}, {odd}]")
    ]
    for batch in together(calls, MOST_IN_A_BATCH):
        check(await otters.http.post("/solana", content=sent(batch)), batch)


@pytest.mark.parametrize("field", DAS_FIELDS)
async def test_the_index_of_solana_refuses_odd_parameters(otters: Otters, field: str):
    address = (await otters.collection())["contract"]
    usual: dict[str, dict[str, Any]] = {
        "getAsset": {"id": address}, "getAssetBatch": {"ids": [address]},
        "getAssetsByOwner": {"ownerAddress": address},
        "getAssetsByGroup": {"groupKey": "collection", "groupValue": address},
        "searchAssets": {"tokenType": "all", "ownerAddress": address},
    }  # fmt: skip
    calls = list[str]()
    for method, params in usual.items():
        rest = json.dumps({name: value for name, value in params.items() if name != field})[1:-1]
        for odd in (*ODD_VALUES, '{"sortBy": [], "sortDirection": 1}', '{"showFungible": 1.5}'):
            given = "{" + rest + (", " if rest else "") + f'"{field}": {odd}' + "}"
            calls.append(asked(method, given))
    for batch in together(calls, MOST_IN_A_BATCH):
        check(await otters.http.post("/solana", content=sent(batch)), batch)


async def test_a_node_of_solana_answers_no_notification(otters: Otters):
    call = {"jsonrpc": "2.0", "method": "getHealth"}
    for body in (call, [call], [call, call], {**call, "method": "nothing"}):
        answer = await otters.http.post("/solana", json=body)
        assert (answer.status_code, answer.content) == (200, b"")
    both = (await otters.http.post("/solana", json=[call, {**call, "id": 1}])).json()
    assert [answer["id"] for answer in both] == [1]


@pytest.mark.parametrize("id_", [True, -1, 1.5, 1e30, 2**64, {}, []])
async def test_an_id_that_a_node_of_solana_cannot_read_makes_a_call_invalid(otters: Otters, id_: object):
    for call in ({"jsonrpc": "2.0", "id": id_, "method": "getSlot"}, {"jsonrpc": "2.0", "id": id_}):
        answer = (await otters.http.post("/solana", json=call)).json()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize("id_", [None, "a", "", 0, 2**64 - 1])
async def test_an_answer_of_solana_has_the_id_of_the_call(otters: Otters, id_: object):
    answer = (await otters.http.post("/solana", json={"jsonrpc": "2.0", "id": id_, "method": "getSlot"})).json()
    assert (answer["id"], answer["result"] > 0) == (id_, True)
