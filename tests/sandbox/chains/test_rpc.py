"""The front ends to the chains, without faults."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from tests.sandbox.chains.nodes import MELLOW_CATS, STRANGER, Nodes

IDS = {
    "ethereum": 1,
    "polygon": 137,
    "arbitrum": 42161,
    "optimism": 10,
    "base": 8453,
    "apechain": 33139,
    "abstract": 2741,
}
# Loops until 5 million gas are left, then returns the word 1.
HUNGRY = "0x5b5a63004c4b40106000576001600052602" + "06000f3"


def test_every_chain_answers_with_its_own_id_and_three_collections(nodes: Nodes):
    chains = nodes.world()["chains"]
    for chain, number in IDS.items():
        assert chains[chain]["chain_id"] == number
        for front in ("rpc", "rpc2"):
            assert int(nodes.rpc("eth_chainId", chain=chain, front=front), 16) == number
        standards = [collection["standard"] for collection in chains[chain]["collections"]]
        assert standards[:3] == ["ERC721", "ERC721Enumerable", "ERC1155"]
    slugs = [collection["slug"] for chain in IDS for collection in chains[chain]["collections"][:3]]
    assert len(set(slugs)) == 21


def test_both_front_ends_say_what_the_world_says(nodes: Nodes):
    for who, count in (("carol", 3), ("dave", 2), ("mallory", 0)):
        for front in ("rpc", "rpc2"):
            assert nodes.balance(MELLOW_CATS, nodes.wallet(who), front=front) == count


def test_receipts_on_abstract_have_what_zksyncs_nodes_add(nodes: Nodes):
    contract = nodes.collection("soft-robots", "abstract")["contract"]
    minted = nodes.act("mint", "abstract", contract=contract, token_id="8001", to=STRANGER)
    receipt = nodes.rpc("eth_getTransactionReceipt", minted["hash"], chain="abstract")
    assert (receipt["l2ToL1Logs"], receipt["l1BatchNumber"], receipt["l1BatchTxIndex"]) == ([], None, None)
    assert [(log["transactionLogIndex"], log["logType"]) for log in receipt["logs"]] == [("0x0", None)]
    assert nodes.rpc("eth_getBlockReceipts", receipt["blockNumber"], chain="abstract") == [receipt]
    assert "l1BatchTxIndex" in nodes.rpc("eth_getTransactionByHash", minted["hash"], chain="abstract")
    assert nodes.rpc("eth_getTransactionReceipt", "0x" + "11" * 32, chain="abstract") is None
    contract = nodes.collection(MELLOW_CATS)["contract"]
    minted = nodes.act("mint", contract=contract, token_id="8001", to=STRANGER)
    assert "l2ToL1Logs" not in nodes.rpc("eth_getTransactionReceipt", minted["hash"])


def test_multicall_is_where_the_real_one_is_and_not_on_abstract(nodes: Nodes):
    place = "0xcA11bde05977b3631167028862bE2a173976CA11"
    assert len(nodes.rpc("eth_getCode", place, "latest")) > 100
    assert nodes.rpc("eth_getCode", place, "latest", chain="abstract") == "0x"
    carol = nodes.wallet("carol")[2:].rjust(64, "0")
    contract = nodes.collection(MELLOW_CATS)["contract"][2:].rjust(64, "0")
    # aggregate3 of one call: balanceOf(carol), padded to whole words
    inner = "70a08231" + carol
    data = "0x82ad56cb" + "".join(f"{value:064x}" for value in (32, 1, 32)) + contract
    data += "".join(f"{value:064x}" for value in (1, 96, 36)) + inner.ljust(128, "0")
    answer = nodes.rpc("eth_call", {"to": place, "data": data}, "latest")
    assert int(answer[-64:], 16) == 3


def test_a_batch_is_answered_item_by_item_and_logged_so(nodes: Nodes):
    since = nodes.http.get("/control/requests").json()["next"]
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "eth_chainId", "params": []},
        {"jsonrpc": "2.0", "id": "b", "method": "eth_getBalance", "params": [STRANGER, "latest"]},
    ]
    answers = nodes.http.post("/rpc2/base", json=batch).json()
    assert [(answer["id"], answer["result"]) for answer in answers] == [("a", "0x2105"), ("b", "0x0")]
    noted = nodes.http.get("/control/requests", params={"since": since}).json()["requests"]
    assert [(note["target"], note["rpc_method"]) for note in noted] == [
        ("rpc2:base", "eth_chainId"),
        ("rpc2:base", "eth_getBalance"),
    ]


@pytest.mark.parametrize(
    "method", ["anvil_mine", "evm_mine", "hardhat_setBalance", "debug_traceCall", "eth_sendTransaction"]
)
def test_what_only_a_development_node_has_is_not_there(nodes: Nodes, method: str):
    assert nodes.ask(method).json()["error"]["code"] == -32601


def test_a_call_with_overridden_code_may_burn_more_than_50_million_gas(nodes: Nodes):
    call = {"to": STRANGER, "gas": hex(60_000_000)}
    assert int(nodes.rpc("eth_call", call, "latest", {STRANGER: {"code": HUNGRY}}), 16) == 1


def test_state_older_than_128_blocks_is_gone(nodes: Nodes):
    head = nodes.act("mine", "polygon", blocks="200")["block"]
    for method, params in (("eth_getBalance", [STRANGER]), ("eth_call", [{"to": STRANGER}])):
        error = nodes.ask(method, *params, hex(head - 129), chain="polygon").json()["error"]
        assert "missing trie node" in error["message"]
        assert "result" in nodes.ask(method, *params, hex(head - 100), chain="polygon").json()
    assert nodes.ask("eth_getBalance", STRANGER, hex(head + 500), chain="polygon").json()["error"]["code"] == -32000
    assert nodes.rpc("eth_getBlockByNumber", hex(head - 150), False, chain="polygon")["number"] == hex(head - 150)


def test_a_signed_transaction_moves_a_token_that_the_world_then_shows(nodes: Nodes):
    erin = nodes.wallet("erin")
    nodes.act("send", **{"from": STRANGER}, to=erin, value_wei=str(10**18))
    words = "".join(part.rjust(64, "0") for part in (erin[2:], STRANGER[2:], "6"))
    nodes.signed("erin", nodes.collection(MELLOW_CATS)["contract"], "0x23b872dd" + words)
    assert nodes.owners(MELLOW_CATS, "6") == {STRANGER: "1"}


async def test_a_websocket_takes_calls_and_subscriptions(nodes: Nodes):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/optimism") as socket:
        await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []})
        assert (await socket.receive_json(timeout=10))["result"] == "0xa"
        await socket.send_json({"jsonrpc": "2.0", "id": 2, "method": "eth_subscribe", "params": ["newHeads"]})
        subscription = (await socket.receive_json(timeout=10))["result"]
        await asyncio.to_thread(nodes.act, "mine", "optimism", blocks="1")
        event = await socket.receive_json(timeout=10)
        assert event["params"]["subscription"] == subscription


async def test_a_request_that_is_too_long_is_refused_unread(nodes: Nodes):
    """The limits of Geth's package rpc: 5 MiB over HTTP, 32 MiB in a message of a WebSocket."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
    assert nodes.http.post("/rpc/base", content=json.dumps(call).ljust(5 * 2**20)).status_code == 200
    refused = nodes.http.post("/rpc/base", content=json.dumps(call).ljust(5 * 2**20 + 1))
    assert (refused.status_code, refused.text) == (413, "content length too large (5242881>5242880)\n")
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/base") as socket:
        await socket.send_str(json.dumps(call).ljust(6 * 2**20))
        assert (await socket.receive_json(timeout=10))["result"] == "0x2105"
        with suppress(ConnectionError):  # closed while it is sent
            await socket.send_str(json.dumps(call).ljust(33 * 2**20))
        assert (await socket.receive(timeout=10)).type is not aiohttp.WSMsgType.TEXT


async def test_a_block_that_a_subscription_sends_can_be_read_at_once(nodes: Nodes):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/arbitrum") as socket:
        await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]})
        assert (await socket.receive_json(timeout=10))["id"] == 1
        mined = asyncio.create_task(asyncio.to_thread(nodes.act, "mine", "arbitrum", blocks="100"))
        answers = list[dict[str, Any]]()
        while len(answers) < 100:
            said = await socket.receive_json(timeout=10)
            if "params" in said:
                params = [STRANGER, said["params"]["result"]["number"]]
                await socket.send_json({"jsonrpc": "2.0", "id": 2, "method": "eth_getBalance", "params": params})
            else:
                answers.append(said)
        await mined
    assert [answer for answer in answers if "error" in answer] == []


def test_metadata_are_where_the_contract_points(nodes: Nodes):
    contract = nodes.collection(MELLOW_CATS)["contract"]
    data = "0xc87b56dd" + "1".rjust(64, "0")
    answer = bytes.fromhex(nodes.rpc("eth_call", {"to": contract, "data": data}, "latest")[2:])
    link = answer[64 : 64 + int.from_bytes(answer[32:64])].decode()
    described = nodes.http.get(link).json()
    assert described["name"] == "Mellow Cats #1"
    traits = {entry["trait_type"]: entry["value"] for entry in described["attributes"]}
    assert traits == nodes.collection(MELLOW_CATS)["tokens"][0]["traits"]
    assert nodes.http.get(described["image"]).headers["content-type"].startswith("image/svg+xml")


def test_a_block_is_named_in_the_forms_that_geth_reads(nodes: Nodes):
    """Its `rpc.BlockNumber` and `rpc.BlockNumberOrHash`."""
    head = nodes.rpc("eth_getBlockByNumber", "latest", False, chain="optimism")
    number, by_hash = head["number"], {"blockHash": head["hash"]}
    for named in (number, "latest", head["hash"], by_hash, {"blockNumber": number}):
        assert "result" in nodes.ask("eth_getBalance", STRANGER, named, chain="optimism").json(), named
        assert nodes.rpc("eth_getBlockReceipts", named, chain="optimism") == []
    for odd in (int(number, 16), "0x0" + number[2:], "", "0x", None):
        for method, *params in (("eth_getBalance", STRANGER, odd), ("eth_getBlockByNumber", odd, False)):
            assert nodes.ask(method, *params, chain="optimism").json()["error"]["code"] == -32602, odd
    for odd in (head["hash"], by_hash, {"blockNumber": number}):
        assert nodes.ask("eth_getBlockByNumber", odd, False, chain="optimism").json()["error"]["code"] == -32602, odd
    assert nodes.rpc("eth_call", {"to": STRANGER}, None, chain="optimism") == "0x"


def test_a_range_of_logs_that_ends_before_it_begins_is_refused(nodes: Nodes):
    head = nodes.act("mine", "optimism", blocks="1")["block"]
    for first, last in ((hex(head), hex(head - 1)), ("latest", "earliest"), (hex(head + 9), "latest")):
        for method in ("eth_getLogs", "eth_newFilter"):
            answer = nodes.ask(method, {"fromBlock": first, "toBlock": last}, chain="optimism").json()
            assert answer["error"] == {"code": -32602, "message": "invalid block range params"}
    assert nodes.rpc("eth_getLogs", {"fromBlock": hex(head), "toBlock": hex(head)}, chain="optimism") == []
    for tag in ("safe", "finalized"):
        number = nodes.rpc("eth_getBlockByNumber", tag, False, chain="optimism")["number"]
        assert int(number, 16) < head
        assert nodes.rpc("eth_getLogs", {"fromBlock": tag, "toBlock": number}, chain="optimism") == []
        beyond = nodes.ask("eth_getLogs", {"fromBlock": hex(head), "toBlock": tag}, chain="optimism").json()
        assert beyond["error"]["message"] == "invalid block range params"


def test_a_range_of_logs_that_begins_beyond_the_head_is_refused_and_one_that_ends_there_is_cut(nodes: Nodes):
    """As most versions of clients do; the newest refuse both (https://github.com/ethereum/execution-apis/pull/875)."""
    said = {"code": -32602, "message": "block range extends beyond current head block"}
    for chain in ("optimism", "abstract"):
        head = nodes.act("mine", chain, blocks="1")["block"]
        ends, begins = ({"fromBlock": hex(head + ahead), "toBlock": hex(head + 100)} for ahead in (-3, 50))
        assert "result" in nodes.ask("eth_getLogs", ends, chain=chain).json()
        assert nodes.ask("eth_getLogs", begins, chain=chain).json()["error"] == said
        assert "result" in nodes.ask("eth_newFilter", ends, chain=chain).json()


def test_a_plan_counts_the_blocks_up_to_a_settled_one(nodes: Nodes):
    nodes.act("mine", "arbitrum", blocks="20")
    settled = int(nodes.rpc("eth_getBlockByNumber", "finalized", False, chain="arbitrum")["number"], 16)
    for blocks, refused in ((10, False), (11, True)):
        wanted = {"fromBlock": hex(settled - blocks + 1), "toBlock": "finalized"}
        answer = nodes.ask("eth_getLogs", wanted, chain="arbitrum").json()
        assert ("error" in answer) is refused, answer


async def test_a_websocket_refuses_what_it_cannot_read_in_text(nodes: Nodes):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/optimism") as socket:
        for odd, code in (("{", -32700), ("[]", -32600), ("{}", -32600)):
            await socket.send_str(odd)
            assert (await socket.receive_json(timeout=5))["error"]["code"] == code, odd


CHAIN_ID = {"jsonrpc": "2.0", "method": "eth_chainId", "params": []}


@pytest.mark.parametrize("method", ["eth_chainId", "eth_getLogs", "web3_clientVersion", "nothing"])
async def test_a_notification_is_not_answered(nodes: Nodes, method: str):
    notification, call = {**CHAIN_ID, "method": method}, {**CHAIN_ID, "id": 2}
    for alone in (notification, [notification], [notification, notification]):
        answer = nodes.http.post("/rpc/base", json=alone)
        assert (answer.status_code, answer.content) == (200, b"")
    both = nodes.http.post("/rpc/base", json=[notification, call]).json()
    assert both == [{"jsonrpc": "2.0", "id": 2, "result": hex(8453)}]
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/base") as socket:
        await socket.send_json(notification)
        await socket.send_json([notification])
        await socket.send_json(call)
        assert (await socket.receive_json(timeout=5))["id"] == 2


async def test_a_notification_is_carried_out(nodes: Nodes):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/optimism") as socket:
        await socket.send_json({"jsonrpc": "2.0", "method": "eth_subscribe", "params": ["newHeads"]})
        await socket.send_json({**CHAIN_ID, "id": 2})
        assert (await socket.receive_json(timeout=5))["id"] == 2
        event: dict[str, Any] = {}
        for _ in range(5):  # a subscription begins a moment after the call
            await asyncio.to_thread(nodes.act, "mine", "optimism", blocks="1")
            with suppress(TimeoutError):
                event = await socket.receive_json(timeout=1)
                break
        assert event["method"] == "eth_subscription"


@pytest.mark.parametrize("kind", ["429", "500", "malformed"])
async def test_a_notification_is_not_answered_on_a_socket_with_a_fault(nodes: Nodes, kind: str):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/base") as socket:
        fault = {"target": "rpc:base", "kind": kind, "seconds": 60}
        try:
            assert nodes.http.post("/control/faults", json=fault).status_code == 200
            await socket.send_json(CHAIN_ID)
            await socket.send_json({**CHAIN_ID, "id": 1})
            assert '"id":1,' in await socket.receive_str(timeout=5)
            with pytest.raises(TimeoutError):
                await socket.receive_str(timeout=0.2)
        finally:
            nodes.http.delete("/control/faults")


@pytest.mark.parametrize("method", ["eth_chainId", "web3_clientVersion", "nothing"])
@pytest.mark.parametrize("id_", [None, "a", True, -1, 1.5, 1e30, 2**63])
async def test_an_answer_has_the_id_of_the_call(nodes: Nodes, method: str, id_: object):
    call = {**CHAIN_ID, "method": method, "id": id_}
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/base") as socket:
        await socket.send_json(call)
        for answer in (nodes.http.post("/rpc/base", json=call).json(), await socket.receive_json(timeout=5)):
            assert (type(answer["id"]), answer["id"]) == (type(id_), id_)
            assert answer.get("error", {}).get("code") == (-32601 if method == "nothing" else None)


@pytest.mark.parametrize("method", ["eth_chainId", "web3_clientVersion", "nothing", "eth_subscribe"])
@pytest.mark.parametrize("id_", [{}, [1]])
async def test_an_id_that_is_an_object_or_a_list_makes_a_call_invalid(nodes: Nodes, method: str, id_: object):
    call = {**CHAIN_ID, "method": method, "id": id_}
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/base") as socket:
        await socket.send_json(call)
        for answer in (nodes.http.post("/rpc/base", json=call).json(), await socket.receive_json(timeout=5)):
            assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    given = nodes.http.post("/rpc/base", json=[call, {**CHAIN_ID, "id": 1}]).json()
    assert [answer["id"] for answer in given] == [None, 1]


async def test_a_subscription_has_the_id_of_the_call(nodes: Nodes):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/base") as socket:
        for id_ in (True, 1.5, "a", None):
            await socket.send_json({"jsonrpc": "2.0", "id": id_, "method": "eth_subscribe", "params": ["newHeads"]})
            answer = await socket.receive_json(timeout=5)
            assert (answer["id"], answer["result"][:2]) == (id_, "0x")


async def test_a_subscription_in_a_batch_is_answered_among_the_others(nodes: Nodes):
    subscribe = {"jsonrpc": "2.0", "method": "eth_subscribe", "params": ["newHeads"]}
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/optimism") as socket:
        batch = [{**subscribe, "id": "a"}, {**CHAIN_ID, "id": 2}, subscribe, {**subscribe, "id": 3, "params": ["no"]}]
        await socket.send_json(batch)
        answers = await socket.receive_json(timeout=5)
        assert [answer["id"] for answer in answers] == ["a", 2, 3]
        assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, -32601]
        await asyncio.to_thread(nodes.act, "mine", "optimism", blocks="1")
        heard = {(await socket.receive_json(timeout=10))["params"]["subscription"] for _ in range(2)}
        assert answers[0]["result"] in heard
        assert len(heard) == 2
        await socket.send_json([{**subscribe, "method": "eth_unsubscribe", "params": [answers[0]["result"]], "id": 4}])
        assert await socket.receive_json(timeout=5) == [{"jsonrpc": "2.0", "id": 4, "result": True}]


@pytest.mark.parametrize(
    ("params", "code", "said"),
    [
        (["nope"], -32601, 'no "nope" subscription in eth namespace'),
        ([], -32602, "expected subscription name as first argument"),
        ([{}], -32602, "expected subscription name as first argument"),
        (None, -32602, "non-array args"),
        ({}, -32602, "non-array args"),
    ],
)
async def test_an_unknown_subscription_is_refused_in_the_words_of_geth(
    nodes: Nodes, params: object, code: int, said: str
):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/base") as socket:
        await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params})
        answer = await socket.receive_json(timeout=5)
        assert answer == {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": said}}


@pytest.mark.parametrize("version", [{}, {"jsonrpc": None}, {"jsonrpc": "1.0"}])
def test_a_call_without_a_version_is_answered(nodes: Nodes, version: dict[str, object]):
    call = {**version, "method": "web3_clientVersion", "params": []}
    assert nodes.http.post("/rpc/base", json={**call, "id": 1}).json()["result"].startswith("Geth/")
    assert nodes.http.post("/rpc/base", json=call).content == b""
