"""A collection from before the standards: its own events and functions, and no ERC-165."""

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from tests.sandbox.chains.nodes import STRANGER, Nodes

BUYER = "0x00000000000000000000000000000000000b0e4e"
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"


@pytest.fixture(scope="module")
def punks(nodes: Nodes) -> str:
    return nodes.act("deploy", standard="Punks", name="Attic Punks", slug="attic-punks")["contract"]


def calldata(form: str, types: list[str], *values: object) -> str:
    return "0x" + (keccak(text=form)[:4] + encode(types, values)).hex()


def test_punks_are_assigned_given_away_and_listed(nodes: Nodes, punks: str):
    nodes.act("mint", contract=punks, token_id="7", to=STRANGER)
    assert nodes.collection("attic-punks")["standard"] == "Punks"
    assert (nodes.owners("attic-punks", "7"), nodes.balance("attic-punks", STRANGER)) == ({STRANGER: "1"}, 1)
    moved = nodes.act("transfer", contract=punks, token_id="7", to=BUYER)
    logs = nodes.rpc("eth_getTransactionReceipt", moved["hash"])["logs"]
    assert [len(log["topics"]) for log in logs if log["topics"][0] == TRANSFER] == [3]
    assert (nodes.owners("attic-punks", "7"), nodes.balance("attic-punks", STRANGER)) == ({BUYER: "1"}, 0)
    nodes.act("burn", contract=punks, token_id="7")
    assert nodes.owners("attic-punks", "7") == {}


def test_a_punk_is_offered_and_bought(nodes: Nodes, punks: str):
    nodes.act("mint", contract=punks, token_id="9", to=STRANGER)
    offer = calldata("offerPunkForSale(uint256,uint256)", ["uint256", "uint256"], 9, 5)
    nodes.act("send", **{"from": STRANGER, "to": punks, "value_wei": "0", "data": offer})
    buy = calldata("buyPunk(uint256)", ["uint256"], 9)
    assert nodes.refused("send", **{"from": BUYER, "to": punks, "value_wei": "4", "data": buy})[0] == 409
    nodes.act("send", **{"from": BUYER, "to": punks, "value_wei": "5", "data": buy})
    assert nodes.owners("attic-punks", "9") == {BUYER: "1"}


def test_what_it_does_not_know_it_ends_at_an_invalid_opcode(nodes: Nodes, punks: str):
    asked = {"to": punks, "data": calldata("supportsInterface(bytes4)", ["bytes4"], bytes.fromhex("01ffc9a7"))}
    error = nodes.ask("eth_call", asked, "latest").json()["error"]
    assert "opcode" in error["message"].lower()
    assert "revert" not in error["message"].lower()


def test_a_reset_takes_it_off_the_chain(nodes: Nodes, punks: str):
    nodes.act("mint", contract=punks, token_id="11", to=STRANGER)
    assert nodes.http.post("/control/reset").status_code == 200
    assert nodes.rpc("eth_getCode", punks, "latest") == "0x"
