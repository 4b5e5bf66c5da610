"""The chains and accounts after a kill, and after a reset."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import aiohttp
import httpx
import psutil
import pytest

from sandbox.base.chain_table import CHAINS
from sandbox.chains import names
from sandbox.chains.abi import ARTEFACTS
from sandbox.chains.chain import Chain
from sandbox.chains.replay import DEEPEST_REORG
from sandbox.chains.seeds import created
from sandbox.contracts.compile import sources
from tests.sandbox.chains.nodes import CORNER_SHOP, MELLOW_CATS, STRANGER, Nodes, running

REGISTRY = "0x00000000000000447e69651d841bD8D104Bed493"
PAUPER = "0x00000000000000000000000000000000000ace01"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A sandbox for the tests that leave nothing behind in it; the first of them find it fresh."""
    with running(tmp_path_factory.mktemp("survive") / "sandbox") as nodes:
        yield nodes


def content(nodes: Nodes) -> dict[str, object]:
    """Return the whole content of the chains and marketplaces, without block numbers."""
    world = nodes.world()
    chains = {name: {**chain, "block": None} for name, chain in world["chains"].items()}
    return {"chains": chains, "accounts": world["accounts"]}


def node_of(nodes: Nodes, chain: str) -> psutil.Process:
    """Return the process of a chain's node."""
    assert nodes.process is not None
    number = str(nodes.world()["chains"][chain]["chain_id"])
    children = psutil.Process(nodes.process.pid).children()
    return next(child for child in children if number in child.cmdline())


def test_a_fresh_chain_has_settled_blocks(nodes: Nodes):
    for chain in set(nodes.world()["chains"]) - {"solana", "apechain"}:
        for tag in ("safe", "finalized"):
            block = nodes.rpc("eth_getBlockByNumber", tag, False, chain=chain)
            assert block is not None, (chain, tag)
            assert int(block["number"], 16) <= nodes.block(chain)


def test_the_deepest_reorg_leaves_a_fresh_chain_with_what_it_began_with(nodes: Nodes):
    seeded = content(nodes)
    for chain in CHAINS:
        nodes.act("reorg", chain, depth=str(DEEPEST_REORG))
    assert content(nodes) == seeded


async def test_a_node_that_starts_again_looks_as_if_it_were_down(nodes: Nodes):
    killed = node_of(nodes, "base")
    killed.kill()
    answers = list[str]()
    while "result" not in answers:
        try:
            answers.append(next(name for name in ("error", "result") if name in nodes.ask("eth_chainId").json()))
        except httpx.RemoteProtocolError:
            answers.append("closed")
    assert set(answers) <= {"closed", "result"}
    mined = nodes.act("mine", "base", blocks="1")
    assert nodes.block("base") >= mined["block"]


def test_no_node_outlives_a_killed_sandbox_and_a_quiet_chain_keeps_its_head_too(nodes: Nodes):
    assert nodes.process is not None
    head = nodes.act("mine", "ethereum", blocks="7")["block"]
    children = psutil.Process(nodes.process.pid).children(recursive=True)
    assert len(children) == 7
    nodes.kill()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    nodes.start()
    assert nodes.block("ethereum") >= head


def test_the_world_and_a_market_are_read_while_a_reorg_or_a_reset_takes_contracts_back(nodes: Nodes):
    with ThreadPoolExecutor(2) as pool:
        done, key = Event(), {"X-API-KEY": "sandbox-opensea-key"}
        listed = f"/opensea/api/v2/chain/base/account/{nodes.wallet('carol')}/nfts"
        limit = {"target": "opensea", "left": 1_000_000, "seconds": 600}
        assert nodes.http.put("/control/limits", json=limit).status_code == 200

        def statuses(path: str) -> set[int]:
            found = set[int]()
            while not done.is_set():
                found.add(nodes.http.get(path, headers=key).status_code)
            return found

        reading = [pool.submit(statuses, path) for path in ("/control/world", listed)]
        try:
            for number in range(8):
                for standard in ("ERC20", "ERC721", "Staking:number"):
                    slug = f"{standard.lower().replace(':', '-')}-{number}"
                    block = nodes.act("deploy", standard=standard, name="Brief", slug=slug)["block"]
                nodes.act("reorg", depth=str(nodes.block() - block + 12))
            nodes.act("deploy", standard="ERC20", name="Brief", slug="brief")
            assert nodes.http.post("/control/reset").status_code == 200
        finally:
            done.set()
        assert [one.result() for one in reading] == [{200}, {200}]


async def test_a_killed_node_comes_back_with_everything_and_its_socket_is_closed(tmp_path: Path):
    with running(tmp_path / "sandbox") as nodes:
        late = nodes.act("deploy", "abstract", standard="ERC1155", name="Late Show", slug="late-show")
        nodes.act("mint", "abstract", contract="late-show", token_id="7", amount="40", to=STRANGER)
        sold = nodes.act("transfer", "abstract", contract="soft-robots", token_id="1", to=STRANGER)
        before, head, elsewhere = content(nodes), nodes.block("abstract"), nodes.block("base")
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/rpc/abstract") as socket:
            for _ in range(2):
                killed = node_of(nodes, "abstract")
                killed.kill()
                assert nodes.http.get(f"/metadata/abstract/{late['contract']}/7").status_code == 200
                # The world waits for the node, and the other chains do not.
                assert nodes.block("base") >= elsewhere
                assert content(nodes) == before
                assert node_of(nodes, "abstract").pid != killed.pid
                assert nodes.block("abstract") >= head
                head = nodes.block("abstract")
            assert (await socket.receive(timeout=10)).type is not aiohttp.WSMsgType.TEXT
        receipt = nodes.rpc("eth_getTransactionReceipt", sold["hash"], chain="abstract")
        assert receipt["blockNumber"] == hex(sold["block"])
        assert nodes.balance("soft-robots", STRANGER, "abstract") == 1
        nodes.act("burn", "abstract", contract=late["contract"], token_id="7", amount="1", **{"from": STRANGER})
        assert nodes.owners("late-show", "7", "abstract") == {STRANGER: "39"}
        nodes.kill()
        nodes.start()
        assert nodes.owners("late-show", "7", "abstract") == {STRANGER: "39"}


def test_the_committed_artefacts_belong_to_the_sources():
    assert ARTEFACTS["sources"] == sources()


def stands_for(nodes: Nodes, name: str) -> str | None:
    """Return what a name resolves to by the registry and the resolver that it names."""
    found = None
    for place, selector in ((names.REGISTRY, "0x0178b8bf"), (names.RESOLVER, "0x3b3b57de")):
        call = {"to": found or place, "data": selector + names.namehash(name)}
        found = "0x" + nodes.rpc("eth_call", call, "latest", chain="ethereum")[-40:]
        if int(found, 16) == 0:
            return None
    return found


def test_nothing_is_lost_by_a_kill_and_a_reset_leads_back(tmp_path: Path):
    with running(tmp_path / "sandbox") as nodes:
        seeded = content(nodes)
        first = nodes.act("deploy", standard="ERC1155", name="Late Show", slug="late-show")
        nodes.act("mint", contract="late-show", token_id="7", amount="40", to=STRANGER)
        nodes.act("mine", blocks="300")
        sold = nodes.act("transfer", contract=MELLOW_CATS, token_id="1", to=STRANGER)
        nodes.act("burn", contract=CORNER_SHOP, token_id="3", amount="1", **{"from": nodes.wallet("carol")})
        nodes.act("send", **{"from": STRANGER}, to=nodes.wallet("erin"), value_wei=str(10**18))
        words = "".join(part.rjust(64, "0") for part in (nodes.wallet("erin")[2:], STRANGER[2:], "6"))
        own = nodes.signed("erin", nodes.collection(MELLOW_CATS)["contract"], "0x23b872dd" + words)
        nodes.act("delegate", vault=STRANGER, to=nodes.wallet("bob"))
        nodes.act("traits", contract=MELLOW_CATS, token_id="1", traits={"Hat": "Fez"})
        nodes.act("name", "ethereum", name="ace.eth", address=STRANGER)
        nodes.act("name", "ethereum", name="carol.eth", address=STRANGER)
        nodes.http.put(f"/control/opensea/accounts/{STRANGER}", json={"bio": "mine", "username": "ace"})
        changed, head = content(nodes), nodes.block()

        nodes.kill()
        nodes.start()
        assert content(nodes) == changed
        assert nodes.block() >= head
        receipt = nodes.rpc("eth_getTransactionReceipt", sold["hash"])
        assert receipt["blockNumber"] == hex(sold["block"])
        assert nodes.rpc("eth_getTransactionReceipt", own)["status"] == "0x1"
        assert nodes.balance(MELLOW_CATS, nodes.wallet("carol")) == 2
        assert {stands_for(nodes, name) for name in ("ace.eth", "carol.eth")} == {STRANGER}

        head = nodes.block()
        assert nodes.http.post("/control/reset").status_code == 200
        assert content(nodes) == seeded
        assert (stands_for(nodes, "ace.eth"), stands_for(nodes, "carol.eth")) == (None, nodes.wallet("carol"))
        assert nodes.block() > head
        moved = nodes.rpc("eth_getLogs", {"fromBlock": hex(head + 1), "address": receipt["to"]})
        assert len(moved) == 2
        assert nodes.rpc("eth_getCode", first["contract"], "latest") == "0x"

        again = nodes.act("deploy", standard="ERC1155", name="Late Show", slug="late-show")
        assert again["contract"] == first["contract"]
        assert again["block"] > head
        changed, head = content(nodes), nodes.block()
        nodes.kill()
        nodes.start()
        assert content(nodes) == changed
        assert nodes.block() >= head


def coin_of(nodes: Nodes, account: str) -> int:
    """Return what an account has of Base's own coin, in wei."""
    return int(nodes.rpc("eth_getBalance", account, "latest"), 16)


def test_the_own_coin_outlives_a_kill_and_not_a_reset(tmp_path: Path):
    with running(tmp_path / "sandbox") as nodes:
        bob, erin = nodes.wallet("bob"), nodes.wallet("erin")
        nodes.act("send", **{"from": STRANGER}, to=erin, value_wei=str(7 * 10**18))
        nodes.act("send", **{"from": STRANGER}, to=bob, value_wei=str(5 * 10**18))
        nodes.act("send", **{"from": bob}, to=PAUPER, value_wei=str(4 * 10**18))
        for blocks in ("450", "1"):  # restored in the first blocks of the new node, or in their own
            nodes.act("mine", blocks=blocks)
            before = [coin_of(nodes, account) for account in (bob, erin, PAUPER)]
            nodes.kill()
            nodes.start()
            assert [coin_of(nodes, account) for account in (bob, erin, PAUPER)] == before
            nodes.signed("erin", STRANGER, "0x", value=10**18)
        accounts = [one["account"] for one in nodes.world()["chains"]["base"]["accounts"]]
        for account in accounts:
            nodes.act("self-transaction", account=account, value_wei="7")
        assert nodes.http.post("/control/reset").status_code == 200
        assert [coin_of(nodes, account) for account in (bob, erin, PAUPER, STRANGER)] == [0, 0, 0, 0]
        nodes.act("send", **{"from": STRANGER}, to=erin, value_wei="3")
        paid = [nodes.act("self-transaction", account=account, value_wei="5") for account in accounts]
        before = coin_of(nodes, STRANGER)
        nodes.kill()
        nodes.start()
        assert all(nodes.rpc("eth_getTransactionReceipt", one["hash"])["status"] == "0x1" for one in paid)
        assert [coin_of(nodes, account) for account in (bob, erin, PAUPER, STRANGER)] == [0, 3, 0, before]


def words(*values: str | int) -> str:
    return "".join((value[2:] if isinstance(value, str) else f"{value:x}").rjust(64, "0") for value in values)


def rights(nodes: Nodes, carol: str, made: str) -> list[int]:
    """Return carol's nonce, what she lets STRANGER do, and the length of the code that she deployed."""
    cats, coin = nodes.collection(MELLOW_CATS)["contract"], nodes.collection("harbour-dollar")["contract"]
    asked = [
        (cats, "0xe985e9c5" + words(carol, STRANGER)),  # isApprovedForAll
        (cats, "0x081812fc" + words(2)),  # getApproved
        (coin, "0xdd62ed3e" + words(carol, STRANGER)),  # allowance
        (REGISTRY, "0xe839bd53" + words(STRANGER, carol, 0)),  # checkDelegateForAll
        (REGISTRY, "0xb9f36874" + words(STRANGER, carol, cats, 2, 0)),  # checkDelegateForERC721
    ]
    given = [int(nodes.rpc("eth_call", {"to": to, "data": data}, "latest"), 16) for to, data in asked]
    nonce = int(nodes.rpc("eth_getTransactionCount", carol, "latest"), 16)
    return [nonce, *given, len(nodes.rpc("eth_getCode", made, "latest"))]


def test_a_reset_takes_back_what_people_signed(tmp_path: Path):
    with running(tmp_path / "sandbox") as nodes:
        carol, none = nodes.wallet("carol"), [0, 0, 0, 0, 0, 0, 2]
        cats, coin = nodes.collection(MELLOW_CATS)["contract"], nodes.collection("harbour-dollar")["contract"]
        made = created(carol, 0)
        assert rights(nodes, carol, made) == none
        receipts = list[str]()
        for _ in range(2):
            nodes.act("send", **{"from": STRANGER}, to=carol, value_wei=str(10**18))
            # Code that returns the single byte 0xfe as the code of a contract.
            deployed = nodes.signed("carol", "0x", "0x60fe60005360016000f3")
            nodes.signed("carol", cats, "0xa22cb465" + words(STRANGER, 1))  # setApprovalForAll
            nodes.signed("carol", cats, "0x095ea7b3" + words(STRANGER, 2))  # approve
            nodes.signed("carol", coin, "0x095ea7b3" + words(STRANGER, 5))
            nodes.signed("carol", REGISTRY, "0x30ff3140" + words(STRANGER, 0, 1))  # delegateAll
            nodes.signed("carol", REGISTRY, "0xb18e2bbb" + words(STRANGER, cats, 2, 0, 1))  # delegateERC721
            receipts.append(nodes.rpc("eth_getTransactionReceipt", deployed)["contractAddress"])
            assert rights(nodes, carol, made) == [6, 1, int(STRANGER, 16), 5, 1, 1, 4]
            nodes.signed("carol", PAUPER, "0x", value=1, ahead=1)
            assert nodes.http.post("/control/reset").status_code == 200
            assert rights(nodes, carol, made) == none
        assert receipts == [made, made]
        nodes.act("send", **{"from": STRANGER}, to=carol, value_wei=str(10**18))
        for _ in range(8):
            nodes.signed("carol", STRANGER, "0x")
        assert coin_of(nodes, PAUPER) == 0, "what waited for an earlier nonce does not wait any more"
        before = rights(nodes, carol, made)
        nodes.kill()
        nodes.start()
        assert rights(nodes, carol, made) == before == [8, 0, 0, 0, 0, 0, 2]


class Slow:
    """A node that mines a moment after it takes a transaction, while one of somebody else waits for its turn."""

    looked = 0

    async def post(self, body: bytes) -> bytes:
        return b'{"result": "0xnew"}'

    async def call(self, method: str, *params: Any) -> Any:
        self.looked += method == "eth_getTransactionReceipt"
        receipt = {"from": STRANGER, "to": PAUPER, "contractAddress": None, "blockNumber": "0x1"}
        return {
            "eth_blockNumber": "0x1",
            "eth_getBalance": "0x7",
            "eth_getTransactionByHash": {"value": "0x7"},
            "eth_getTransactionReceipt": receipt if self.looked > 2 else None,
            "txpool_content": {"pending": {}, "queued": {STRANGER: {"5": {"hash": "0xother"}}}},
            "txpool_status": {"pending": "0x0", "queued": "0x1"},
            "web3_sha3": "0xnew",
        }[method]


async def test_a_payment_is_recorded_at_once_where_another_waits_for_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    chain = Chain(CHAINS["base"], "http://localhost", tmp_path, Path("anvil"))
    monkeypatch.setattr(chain, "node", Slow())
    await chain.send_raw(b"{}", "0x01")
    assert [record["raw"] for record in chain.journal.records()] == ["0x01"]
    chain.journal.close()


class Again(Slow):
    """A node that has the same transaction from before a reset, and mines it again in block 6."""

    def __init__(self, queued: bool) -> None:
        self.queued = queued

    async def call(self, method: str, *params: Any) -> Any:
        answer = await super().call(method, *params)
        if method == "eth_getTransactionReceipt":
            answer = {"from": STRANGER, "to": PAUPER, "contractAddress": None, "blockNumber": "0x1"}
            return {**answer, "blockNumber": "0x6"} if self.looked > 2 and not self.queued else answer
        if method == "txpool_content" and self.queued:
            return {"pending": {}, "queued": {STRANGER: {"5": {"hash": "0xnew"}}}}
        return "0x5" if method == "eth_blockNumber" else answer


@pytest.mark.parametrize("queued", [False, True])
async def test_a_payment_of_before_a_reset_is_recorded_when_it_is_mined_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queued: bool
):
    """A reset takes nonces back, so a client may send the very bytes that it sent before; they have the same hash."""
    chain, node = Chain(CHAINS["base"], "http://localhost", tmp_path, Path("anvil")), Again(queued)
    monkeypatch.setattr(chain, "node", node)
    await chain.note_head()
    await chain.send_raw(b"{}", "0x01")
    assert [record["block"] for record in chain.journal.records()] == ([] if queued else [6])
    chain.journal.close()


def test_an_old_payment_of_a_client_is_repeated_after_a_kill(tmp_path: Path):
    with running(tmp_path / "sandbox") as nodes:
        erin = nodes.wallet("erin")
        nodes.act("send", **{"from": STRANGER}, to=erin, value_wei=str(7 * 10**18))
        paid = [nodes.signed("erin", PAUPER, "0x", value=5 * 10**18)]
        nodes.act("mine", blocks="450")
        paid.append(nodes.signed("erin", PAUPER, "0x", value=10**18))
        before = coin_of(nodes, erin)
        nodes.kill()
        nodes.start()
        assert int(nodes.rpc("eth_getTransactionCount", erin, "latest"), 16) == 2
        assert [nodes.rpc("eth_getTransactionReceipt", one)["status"] for one in paid] == ["0x1", "0x1"]
        assert [coin_of(nodes, account) for account in (erin, PAUPER)] == [before, 6 * 10**18]
