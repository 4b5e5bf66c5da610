"""Staking contracts: the answers of each kind, and staking and unstaking by control calls."""

from typing import Any

import pytest
from eth_abi.abi import decode, encode
from eth_utils.crypto import keccak

from sandbox.contracts.staking import KINDS
from tests.sandbox.chains.nodes import STRANGER, Nodes


def told(nodes: Nodes, one: dict[str, Any], wallet: str) -> Any:
    """Return the answer of the function named in `view`, with the arguments of `args`."""
    name, _, rest = one["view"].partition("(")
    kinds, _, outputs = rest.partition(") view returns ")
    values = [wallet if arg == "{wallet}" else int(arg) for arg in one["args"]]
    data = keccak(text=f"{name}({kinds})")[:4] + encode(kinds.split(","), values)
    said = nodes.rpc("eth_call", {"to": one["contract"], "data": "0x" + data.hex()}, "latest")
    return decode([outputs[1:-1]], bytes.fromhex(said[2:]))[0]


def test_every_chain_has_one_of_each_kind(nodes: Nodes) -> None:
    for name, chain in nodes.world()["chains"].items():
        standards = [one["standard"] for one in chain["collections"] if "view" in one]
        assert standards == ([] if name == "solana" else [f"Staking:{kind}" for kind in KINDS])
    carol = nodes.wallet("carol")
    assert told(nodes, nodes.collection("staking-number"), carol) == 2
    assert nodes.collection("staking-list", "ethereum")["tokens"] == [
        {"id": "1", "owners": {carol: "1"}, "traits": {}},
        {"id": "2", "owners": {carol: "1"}, "traits": {}},
        {"id": "3", "owners": {nodes.wallet("dave"): "1"}, "traits": {}},
    ]


@pytest.mark.parametrize("kind", ["number", "list", "struct", "constant"])
def test_what_is_staked_is_told_by_the_view_and_listed(nodes: Nodes, kind: str) -> None:
    slug = f"burrow-{kind}"
    made = nodes.act("deploy", standard=f"Staking:{kind}", name=f"Burrow {kind}", slug=slug)
    one = nodes.collection(slug)
    assert (one["contract"], one["standard"], one["tokens"]) == (made["contract"], f"Staking:{kind}", [])

    def count() -> int:
        said = told(nodes, nodes.collection(slug), STRANGER)
        return len(said) if kind == "list" else said[0] if kind == "struct" else said

    assert count() == 0
    nodes.act("stake", contract=slug, token_id="7", **{"from": STRANGER})
    nodes.act("stake", contract=made["contract"], token_id="8", **{"from": STRANGER})
    assert count() == 2
    assert nodes.owners(slug, "7") == {STRANGER: "1"}
    assert nodes.refused("stake", contract=slug, token_id="7", **{"from": nodes.wallet("bob")})[0] == 409
    assert nodes.refused("unstake", contract=slug, token_id="7", **{"from": nodes.wallet("bob")})[0] == 409
    nodes.act("unstake", contract=slug, token_id="7", **{"from": STRANGER})
    assert count() == 1
    assert nodes.owners(slug, "7") == {}


def test_the_hostile_kinds_revert_and_answer_a_megabyte(nodes: Nodes) -> None:
    one = nodes.collection("staking-revert")
    data = "0x" + keccak(text="staked(address)")[:4].hex() + STRANGER[2:].rjust(64, "0")
    assert "error" in nodes.ask("eth_call", {"to": one["contract"], "data": data}, "latest").json()
    huge = nodes.collection("staking-huge")
    data = "0x" + keccak(text="stakedTokens(address)")[:4].hex() + STRANGER[2:].rjust(64, "0")
    assert len(nodes.rpc("eth_call", {"to": huge["contract"], "data": data}, "latest")) > 2_000_000


def test_other_contracts_take_no_stakes_and_other_kinds_are_refused(nodes: Nodes) -> None:
    assert nodes.refused("stake", contract="mellow-cats", token_id="1", **{"from": STRANGER})[0] == 404
    assert nodes.refused("mint", contract="staking-number", token_id="1", to=STRANGER)[0] == 404
    assert nodes.refused("deploy", standard="Staking:other", name="Other", slug="other")[0] == 400
    assert nodes.refused("deploy", standard="Staking:list", name="Twice", slug="staking-list")[0] == 409


def test_a_kill_keeps_stakes_and_a_reset_takes_them_back(nodes: Nodes) -> None:
    seeded = nodes.collection("staking-struct", "optimism")["tokens"]
    nodes.act("stake", "optimism", contract="staking-struct", token_id="70", **{"from": STRANGER})
    nodes.act("unstake", "optimism", contract="staking-struct", token_id="1", **{"from": nodes.wallet("carol")})
    late = nodes.act("deploy", "optimism", standard="Staking:list", name="Late", slug="late")
    nodes.act("stake", "optimism", contract="late", token_id="1", **{"from": STRANGER})
    changed = nodes.collection("staking-struct", "optimism")["tokens"]
    nodes.kill()
    nodes.start()
    assert nodes.collection("staking-struct", "optimism")["tokens"] == changed != seeded
    assert nodes.owners("late", "1", "optimism") == {STRANGER: "1"}
    assert nodes.http.post("/control/reset").status_code == 200
    assert nodes.collection("staking-struct", "optimism")["tokens"] == seeded
    listed = [one["slug"] for one in nodes.world()["chains"]["optimism"]["collections"]]
    assert "late" not in listed
    again = nodes.act("deploy", "optimism", standard="Staking:list", name="Late", slug="late")
    assert again["contract"] == late["contract"]
