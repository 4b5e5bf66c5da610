"""Contract accounts: a Safe and an ERC-4337 account that pay themselves, and refuse every other caller."""

from typing import Any

import pytest

from sandbox.contracts import accounts
from tests.sandbox.chains.nodes import STRANGER, Nodes

DONE = {
    "Safe": "0x442e715f626346e8c54381002da614f62bee8d27386535b2521ec8540898556e",
    "Account4337": "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f",
}


def listed(nodes: Nodes, chain: str = "base") -> dict[str, dict[str, str]]:
    """The account of each standard that the chain has had from the start."""
    return {one["standard"]: one for one in nodes.world()["chains"][chain]["accounts"][:2]}


def events(nodes: Nodes, hash: str) -> list[tuple[str, str]]:
    receipt = nodes.rpc("eth_getTransactionReceipt", hash)
    return [(log["address"], log["topics"][0]) for log in receipt["logs"]]


def test_every_chain_has_one_of_each_at_the_start_and_the_entry_point(nodes: Nodes):
    for chain, state in nodes.world()["chains"].items():
        if chain == "solana":
            continue
        assert {one["standard"]: one["owner"] for one in state["accounts"]} == {
            "Safe": nodes.wallet("carol"), "Account4337": nodes.wallet("dave"),
        }  # fmt: skip
        for address in (state["entry_point"], *(one["account"] for one in state["accounts"])):
            assert nodes.rpc("eth_getCode", address, "latest", chain=chain) != "0x"
    assert listed(nodes) == listed(nodes, "optimism")


@pytest.mark.parametrize("standard", accounts.STANDARDS)
def test_one_is_deployed_and_pays_itself(nodes: Nodes, standard: str):
    made = nodes.act("deploy", standard=standard, owner=STRANGER)["contract"]
    paid = nodes.act("self-transaction", account=made, value_wei="12345")
    told = made if standard == "Safe" else accounts.ENTRY_POINT
    assert (told, DONE[standard]) in events(nodes, paid["hash"])
    again = nodes.act("self-transaction", account=made, data="0x686f6c6466617374")
    assert again["block"] > paid["block"]
    assert int(nodes.rpc("eth_getBalance", made, "latest"), 16) >= 12345


def test_a_safe_executes_for_its_owner_alone(nodes: Nodes):
    safe = listed(nodes)["Safe"]
    for owner in (safe["owner"], STRANGER):
        data = accounts.execution(safe["account"], owner, 0, "0x")
        sent = {"from": STRANGER, "to": safe["account"], "value_wei": "0", "data": data}
        status, said = nodes.refused("send", **sent)
        assert (status, said.rpartition(" ")[2]) == (409, "GS025" if owner != STRANGER else "GS026")


def test_an_operation_that_nobody_approved_is_refused(nodes: Nodes):
    account = listed(nodes)["Account4337"]["account"]
    bundle = accounts.bundle([accounts.operation(account, 0, 0, "0x")])
    sent: dict[str, Any] = {"from": accounts.BUNDLER, "to": accounts.ENTRY_POINT, "value_wei": "0", "data": bundle}
    assert nodes.refused("send", **sent)[0] == 409


def test_who_is_no_account_pays_nobody(nodes: Nodes):
    assert nodes.refused("self-transaction", account=STRANGER, value_wei="1")[0] == 404
    assert nodes.refused("deploy", standard="Safe", name="A", slug="a") == (400, "owner is missing.")


def test_a_reset_takes_later_ones_away_and_a_kill_does_not(nodes: Nodes):
    made = nodes.act("deploy", standard="Account4337", owner=STRANGER)["contract"]
    paid = nodes.act("self-transaction", account=made, value_wei="7")
    nodes.kill()
    nodes.start()
    assert made in {one["account"] for one in nodes.world()["chains"]["base"]["accounts"]}
    assert nodes.rpc("eth_getTransactionReceipt", paid["hash"])["status"] == "0x1"
    assert nodes.http.post("/control/reset").status_code == 200
    assert nodes.rpc("eth_getCode", made, "latest") == "0x"
    assert [one["standard"] for one in nodes.world()["chains"]["base"]["accounts"]] == list(accounts.STANDARDS)
    assert nodes.act("deploy", standard="Account4337", owner=STRANGER)["contract"] != listed(nodes)["Safe"]["account"]
