"""The chains and accounts after a kill, and after a reset."""

from pathlib import Path

import psutil

from sandbox.chains import names
from sandbox.chains.abi import ARTEFACTS
from sandbox.contracts.compile import sources
from tests.sandbox.chains.nodes import CORNER_SHOP, MELLOW_CATS, STRANGER, Nodes, running


def content(nodes: Nodes) -> dict[str, object]:
    """Return the whole content of the chains and marketplaces, without block numbers."""
    world = nodes.world()
    chains = {name: {**chain, "block": None} for name, chain in world["chains"].items()}
    return {"chains": chains, "accounts": world["accounts"]}


def test_no_node_outlives_a_killed_sandbox(tmp_path: Path):
    with running(tmp_path / "sandbox") as nodes:
        assert nodes.process is not None
        children = psutil.Process(nodes.process.pid).children(recursive=True)
        assert len(children) == 7
        nodes.kill()
        _, alive = psutil.wait_procs(children, timeout=10)
        assert alive == []


def test_a_quiet_chain_keeps_its_head_too(tmp_path: Path):
    with running(tmp_path / "sandbox") as nodes:
        head = nodes.act("mine", "ethereum", blocks="7")["block"]
        nodes.kill()
        nodes.start()
        assert nodes.block("ethereum") >= head


def test_a_fresh_chain_has_settled_blocks(tmp_path: Path):
    with running(tmp_path / "sandbox") as nodes:
        for chain in set(nodes.world()["chains"]) - {"solana", "apechain"}:
            for tag in ("safe", "finalized"):
                block = nodes.rpc("eth_getBlockByNumber", tag, False, chain=chain)
                assert block is not None, (chain, tag)
                assert int(block["number"], 16) <= nodes.block(chain)


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
