"""The effect of each fault on one front end of a chain, while the other front end works."""

import asyncio

import aiohttp
import httpx
import pytest

from tests.sandbox.chains.nodes import MELLOW_CATS, STRANGER, Nodes


def test_down_closes_the_connection(nodes: Nodes):
    with nodes.fault("rpc:base", "down"):
        with pytest.raises(httpx.RemoteProtocolError):
            nodes.ask("eth_chainId")
        assert nodes.rpc("eth_chainId", front="rpc2") == "0x2105"
    assert nodes.http.get("/control/requests").json()["requests"][-2]["status"] == 0


def test_slow_outlasts_a_clients_patience(nodes: Nodes):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
    with nodes.fault("rpc:base", "slow"), pytest.raises(httpx.ReadTimeout):
        nodes.http.post("/rpc/base", json=asked, timeout=0.5)


def test_429_and_500_are_http_statuses(nodes: Nodes):
    with nodes.fault("rpc:base", "429"):
        answer = nodes.ask("eth_chainId")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert answer.json()["error"]["code"] == 429
    with nodes.fault("rpc:base", "500"):
        assert nodes.ask("eth_chainId").status_code == 500


@pytest.mark.parametrize("path", ["rpc/base", "solana"])
@pytest.mark.parametrize("kind", ["429", "500", "malformed", "down"])
def test_a_fault_meets_a_body_that_nobody_can_read_too(nodes: Nodes, path: str, kind: str):
    target = path.replace("/", ":")
    broken = nodes.http.post(f"/{path}", content="{")
    assert (broken.status_code, broken.json()["error"]["code"]) == (200, -32700)
    with nodes.fault(target, kind):
        if kind == "down":
            with pytest.raises(httpx.RemoteProtocolError):
                nodes.http.post(f"/{path}", content="{")
        else:
            answer = nodes.http.post(f"/{path}", content="{")
            assert answer.status_code == (200 if kind == "malformed" else int(kind))
            assert "-32700" not in answer.text
    noted = nodes.http.get("/control/requests").json()["requests"]
    last = [note for note in noted if note["target"] == target][-1]
    assert last["status"] == (0 if kind == "down" else 200 if kind == "malformed" else int(kind))


@pytest.mark.parametrize(
    ("kind", "said"), [("429", "429"), ("500", "-32603"), ("malformed", '"result":"0x'), ("zero", "-32700")]
)
async def test_a_fault_meets_a_message_that_nobody_can_read_too(nodes: Nodes, kind: str, said: str):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/base") as socket:
        with nodes.fault("rpc:base", kind):
            await socket.send_str("{")
            assert said in await socket.receive_str(timeout=5)


async def test_down_closes_a_socket_whatever_it_says(nodes: Nodes):
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/base") as socket:
        with nodes.fault("rpc:base", "down"):
            await socket.send_str("{")
            assert (await socket.receive(timeout=5)).type is not aiohttp.WSMsgType.TEXT


def test_empty_has_no_bytes_and_no_logs(nodes: Nodes):
    with nodes.fault("rpc:base", "empty"):
        assert nodes.rpc("eth_call", {"to": STRANGER}, "latest") == "0x"
        assert nodes.rpc("eth_getLogs", {"fromBlock": "0x0"}) == []
        assert nodes.rpc("eth_getBlockByNumber", "latest", False) is None


def test_zero_says_well_formed_nothing(nodes: Nodes):
    carol = nodes.wallet("carol")
    with nodes.fault("rpc:base", "zero"):
        assert nodes.balance(MELLOW_CATS, carol) == 0
        assert nodes.balance(MELLOW_CATS, carol, front="rpc2") == 3
        assert nodes.rpc("eth_getBalance", carol, "latest") == "0x0"
        assert nodes.rpc("eth_chainId") == "0x2105"


def test_stale_stops_where_the_fault_began(nodes: Nodes):
    carol, before = nodes.wallet("carol"), nodes.block("arbitrum")
    with nodes.fault("rpc:arbitrum", "stale"):
        sold = nodes.act("transfer", "arbitrum", contract="night-tram-riders", token_id="1", to=STRANGER)
        assert nodes.block("arbitrum") == before
        assert nodes.balance("night-tram-riders", carol, "arbitrum") == 3
        assert nodes.balance("night-tram-riders", carol, "arbitrum", "rpc2") == 2
        logs = {"fromBlock": hex(before), "toBlock": "latest"}
        cut = {**logs, "toBlock": hex(sold["block"])}
        assert nodes.rpc("eth_getLogs", logs, chain="arbitrum") == nodes.rpc("eth_getLogs", cut, chain="arbitrum") == []
        assert len(nodes.rpc("eth_getLogs", logs, chain="arbitrum", front="rpc2")) == 1
        for first, last, said in (
            (sold["block"], sold["block"], "block range extends beyond current head block"),
            (before + 1, "latest", "invalid block range params"),
        ):
            wanted = {"fromBlock": hex(first), "toBlock": last if isinstance(last, str) else hex(last)}
            refused = nodes.ask("eth_getLogs", wanted, chain="arbitrum").json()["error"]
            assert refused == {"code": -32602, "message": said}
        late = nodes.rpc("eth_getBlockByNumber", "finalized", False, chain="arbitrum")
        assert int(late["number"], 16) == before - 4, "what was settled when it stopped"
        assert nodes.rpc("eth_getTransactionReceipt", sold["hash"], chain="arbitrum") is None
        assert int(nodes.rpc("eth_getBlockByNumber", "latest", False, chain="arbitrum")["number"], 16) == before
        assert nodes.ask("eth_call", {"to": STRANGER}, hex(sold["block"]), chain="arbitrum").json()["error"]
    assert nodes.balance("night-tram-riders", carol, "arbitrum") == 2


def test_a_stale_node_has_no_later_block_by_its_hash_or_through_a_filter(nodes: Nodes):
    watched = nodes.rpc("eth_newFilter", {}, chain="polygon")
    blocks = nodes.rpc("eth_newBlockFilter", chain="polygon")
    with nodes.fault("rpc:polygon", "stale"):
        minted = nodes.act("mint", "polygon", contract="HUSD", amount="5", to=STRANGER)
        later = nodes.rpc("eth_getBlockByNumber", hex(minted["block"]), False, chain="polygon", front="rpc2")["hash"]
        assert nodes.ask("eth_getLogs", {"blockHash": later}, chain="polygon").json()["error"]["code"] == -32000
        assert nodes.rpc("eth_getBlockReceipts", later, chain="polygon") is None
        assert nodes.rpc("eth_getBlockTransactionCountByHash", later, chain="polygon") is None
        assert nodes.ask("eth_getBalance", STRANGER, later, chain="polygon").json()["error"]["code"] == -32000
        for name in (watched, blocks):
            assert nodes.rpc("eth_getFilterChanges", name, chain="polygon") == []
        assert nodes.rpc("eth_getFilterLogs", watched, chain="polygon") == []
        coin = nodes.collection("harbour-dollar", "polygon")["contract"]
        call = {"to": coin, "data": "0x70a08231" + STRANGER[2:].rjust(64, "0")}
        (block,) = nodes.rpc("eth_simulateV1", {"blockStateCalls": [{"calls": [call]}]}, "latest", chain="polygon")
        assert int(block["calls"][0]["returnData"], 16) == 0
    assert len(nodes.rpc("eth_getFilterChanges", watched, chain="polygon")) == 1, "it has them when it goes on"
    assert len(nodes.rpc("eth_getLogs", {"blockHash": later}, chain="polygon")) == 1


@pytest.mark.parametrize("kind", ["stale", "zero"])
async def test_a_faulty_node_answers_a_subscription_and_sends_no_event(nodes: Nodes, kind: str):
    asked = {"jsonrpc": "2.0", "method": "eth_subscribe", "params": ["newHeads"]}
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/optimism") as socket:
        with nodes.fault("rpc:optimism", kind):
            await socket.send_json({**asked, "id": 1})
            assert "result" in await socket.receive_json(timeout=5)
            await asyncio.to_thread(nodes.act, "mine", "optimism", blocks="1")
            await socket.send_json({**asked, "id": 2})
            assert (await socket.receive_json(timeout=5))["id"] == 2, "the block came before"


def test_malformed_is_no_json(nodes: Nodes):
    with nodes.fault("rpc:base", "malformed"):
        answer = nodes.ask("eth_chainId")
        assert answer.status_code == 200
        with pytest.raises(ValueError):
            answer.json()


def test_metadata_have_faults_of_their_own(nodes: Nodes):
    path = f"/metadata/base/{nodes.collection(MELLOW_CATS)['contract']}/1"
    with nodes.fault("metadata", "empty"):
        assert nodes.http.get(path).json() == {}
    with nodes.fault("metadata", "429"):
        assert nodes.http.get(path).status_code == 429
