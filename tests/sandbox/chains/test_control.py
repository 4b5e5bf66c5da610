"""Control calls on the chains: what they change, and what they refuse."""

from collections.abc import Iterator

import pytest

from tests.sandbox.chains.nodes import CORNER_SHOP, MELLOW_CATS, STRANGER, Nodes, running


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with running(tmp_path_factory.mktemp("control") / "sandbox") as nodes:
        yield nodes


def test_mint_transfer_and_burn_show_on_the_chain_and_in_the_world(nodes: Nodes):
    huge = str(2**256 - 1)
    minted = nodes.act("mint", contract=MELLOW_CATS, token_id=huge, to=STRANGER)
    assert nodes.rpc("eth_getTransactionReceipt", minted["hash"])["blockNumber"] == hex(minted["block"])
    assert nodes.block() >= minted["block"] + 4
    assert nodes.balance(MELLOW_CATS, STRANGER) == 1
    nodes.act("transfer", contract=MELLOW_CATS, token_id=huge, to=nodes.wallet("bob"))
    assert nodes.owners(MELLOW_CATS, huge) == {nodes.wallet("bob"): "1"}
    nodes.act("burn", contract=MELLOW_CATS, token_id=huge)
    assert nodes.owners(MELLOW_CATS, huge) == {}


def test_amounts_of_an_erc1155_move_and_add_up(nodes: Nodes):
    carol = nodes.wallet("carol")
    nodes.act("transfer", contract=CORNER_SHOP, token_id="1", amount="2", to=STRANGER, **{"from": carol})
    nodes.act("mint", contract=CORNER_SHOP, token_id="1", amount=str(2**200), to=STRANGER)
    assert nodes.owners(CORNER_SHOP, "1")[STRANGER] == str(2**200 + 2)
    assert nodes.owners(CORNER_SHOP, "1")[carol] == "3"
    status, message = nodes.refused("transfer", contract=CORNER_SHOP, token_id="1", to=STRANGER)
    assert (status, "several holders" in message) == (400, True)


def test_an_enumerable_collection_enumerates_after_moves(nodes: Nodes):
    contract, dave = nodes.collection("driftwood-bears")["contract"], nodes.wallet("dave")
    nodes.act("transfer", contract=contract, token_id="1", to=STRANGER)
    owned = nodes.rpc(
        "eth_call", {"to": contract, "data": "0x2f745c59" + dave[2:].rjust(64, "0") + f"{0:064x}"}, "latest"
    )
    assert int(owned, 16) == 3
    assert int(nodes.rpc("eth_call", {"to": contract, "data": "0x18160ddd"}, "latest"), 16) == 6
    for interface, answer in (("780e9d63", 1), ("80ac58cd", 1), ("d9b67a26", 0), ("ffffffff", 0)):
        call = {"to": contract, "data": "0x01ffc9a7" + interface.ljust(64, "0")}
        assert int(nodes.rpc("eth_call", call, "latest"), 16) == answer


def test_a_deployed_collection_is_listed_with_its_traits(nodes: Nodes):
    contract = nodes.act("deploy", standard="ERC721", name="Fresh Figs", slug="fresh-figs")["contract"]
    nodes.act("mint", contract=contract, token_id="0", to=STRANGER)
    nodes.act("traits", contract=contract, token_id="0", traits={"Level": 7, "Skin": "Green"})
    token = nodes.collection("fresh-figs")["tokens"][0]
    assert token == {"id": "0", "owners": {STRANGER: "1"}, "traits": {"Level": 7, "Skin": "Green"}}
    assert nodes.refused("deploy", standard="ERC721", name="Fresh Figs", slug="fresh-figs")[0] == 409


def test_a_reorg_takes_back_what_was_in_the_last_blocks(nodes: Nodes):
    dave = nodes.wallet("dave")
    sold = nodes.act("transfer", contract=MELLOW_CATS, token_id="4", to=STRANGER)
    assert nodes.owners(MELLOW_CATS, "4") == {STRANGER: "1"}
    before = nodes.block()
    head = nodes.act("reorg", depth=str(before - sold["block"] + 1))["block"]
    assert head >= before
    assert nodes.owners(MELLOW_CATS, "4") == {dave: "1"}
    assert nodes.rpc("eth_getTransactionReceipt", sold["hash"]) is None
    stamp = int(nodes.rpc("eth_getBlockByNumber", hex(head), False)["timestamp"], 16)
    before_it = int(nodes.rpc("eth_getBlockByNumber", hex(sold["block"] - 1), False)["timestamp"], 16)
    assert stamp >= before_it


def test_money_moves_from_anybody(nodes: Nodes):
    sent = nodes.act("send", **{"from": STRANGER}, to=STRANGER, value_wei="1234567", data="0xc0de")
    transaction = nodes.rpc("eth_getTransactionByHash", sent["hash"])
    assert (int(transaction["value"], 16), transaction["input"]) == (1234567, "0xc0de")


def test_a_delegation_is_in_the_registry(nodes: Nodes):
    vault, hot = nodes.wallet("erin"), nodes.wallet("bob")
    nodes.act("delegate", vault=vault, to=hot)
    assert delegates(nodes, hot, vault, rights="") == 1


@pytest.mark.parametrize("rights", ["holdfast", "0x" + b"holdfast".hex()])
def test_a_delegation_can_be_for_some_rights_alone(nodes: Nodes, rights: str):
    vault, hot = nodes.wallet("carol" if rights == "holdfast" else "ada"), nodes.wallet("bob")
    nodes.act("delegate", vault=vault, to=hot, rights=rights)
    assert delegates(nodes, hot, vault, rights=b"holdfast".hex()) == 1
    assert delegates(nodes, hot, vault, rights="") == 0
    assert nodes.refused("delegate", vault=vault, to=hot, rights="x" * 33)[0] == 400


def delegates(nodes: Nodes, hot: str, vault: str, rights: str) -> int:
    """What the registry says of a delegation for everything, 1 or 0."""
    data = "0xe839bd53" + hot[2:].rjust(64, "0") + vault[2:].rjust(64, "0") + rights.ljust(64, "0")
    call = {"to": "0x00000000000000447e69651d841bD8D104Bed493", "data": data}
    return int(nodes.rpc("eth_call", call, "latest"), 16)


def test_what_cannot_be_done_is_refused_with_a_sentence(nodes: Nodes):
    mallory = nodes.wallet("mallory")
    assert nodes.refused("mint", "moonbase", contract=MELLOW_CATS)[0] == 404
    assert nodes.refused("mint", contract="nothing-here", token_id="1", to=STRANGER)[0] == 404
    assert nodes.refused("mint", contract=MELLOW_CATS, token_id="1", to="carol")[0] == 400
    assert nodes.refused("mint", contract=MELLOW_CATS, token_id="one", to=STRANGER)[0] == 400
    assert nodes.refused("mint", contract=MELLOW_CATS, token_id="1", to=STRANGER) == (
        409,
        "The chain refuses this: ERC721: already minted",
    )
    status, message = nodes.refused("transfer", contract=MELLOW_CATS, token_id="1", to=STRANGER, **{"from": mallory})
    assert (status, "not the owner" in message or "not yours" in message) == (409, True)
    assert nodes.refused("mine", blocks="501")[0] == 400
    assert nodes.refused("explode")[0] == 404
