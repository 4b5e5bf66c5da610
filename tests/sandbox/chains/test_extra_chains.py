"""A chain in addition to the sandbox's own: it has its own node, and everything that the others have."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.supervisor.processes import SANDBOX_CANNOT_START
from sandbox.base.chain_table import OWN, extra_chains
from settings import ROOT
from tests.sandbox.chains.nodes import STRANGER, Nodes, running


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SANDBOX_EXTRA_CHAINS", "ninth:424242")
        with running(tmp_path_factory.mktemp("extra") / "sandbox") as nodes:
            yield nodes


def test_both_front_ends_serve_it_and_the_world_lists_it(nodes: Nodes):
    for front in ("rpc", "rpc2"):
        assert nodes.rpc("eth_chainId", chain="ninth", front=front) == hex(424242)
        assert nodes.balance("ninth-owls", nodes.wallet("carol"), chain="ninth", front=front) == 3
    world = nodes.world()["chains"]
    assert list(world) == [*OWN, "ninth", "solana"]
    assert world["ninth"]["rpc"].endswith("/rpc/ninth")
    standards = [collection["standard"] for collection in world["ninth"]["collections"]]
    assert standards[:3] == ["ERC721", "ERC721Enumerable", "ERC1155"]


def test_control_calls_act_on_it(nodes: Nodes):
    made = nodes.act("deploy", "ninth", standard="ERC721", name="Paper Boats", slug="paper-boats")
    nodes.act("mint", "ninth", contract=made["contract"], token_id="1", to=STRANGER)
    assert nodes.owners("paper-boats", "1", "ninth") == {STRANGER: "1"}
    nodes.act("burn", "ninth", contract=made["contract"], token_id="1")
    assert nodes.owners("paper-boats", "1", "ninth") == {}


def test_its_front_ends_fail_on_their_own(nodes: Nodes):
    with nodes.fault("rpc:ninth", "500"):
        assert nodes.ask("eth_chainId", chain="ninth").status_code == 500
        assert nodes.rpc("eth_chainId", chain="ninth", front="rpc2") == hex(424242)
        assert nodes.rpc("eth_chainId", chain="base") == hex(8453)
    with nodes.fault("rpc2:ninth", "zero"):
        assert nodes.balance("ninth-owls", nodes.wallet("carol"), chain="ninth", front="rpc2") == 0


def test_marketplaces_and_metadata_know_it(nodes: Nodes):
    contract = nodes.collection("ninth-owls", "ninth")["contract"]
    key = {"x-api-key": "sandbox-opensea-key"}
    listed = nodes.http.get(f"/opensea/api/v2/chain/ninth/contract/{contract}", headers=key)
    assert listed.json()["collection"] == "ninth-owls"
    assert nodes.http.get(f"/metadata/ninth/{contract}/1").json()["attributes"]


@pytest.mark.parametrize(
    "text",
    [
        "ninth", "ninth:", "ninth:0", "ninth:x", "ninth:9223372036854775808", "Ninth:1000", ":7", "x:7",
        f"{'n' * 21}:7", "base:1000", "ninth:1", "solana:7", "one:7,one:8", "one:7,two:7",
    ],
)  # fmt: skip
def test_what_is_no_further_chain_is_refused(text: str):
    with pytest.raises(ValueError, match=r"^SANDBOX_EXTRA_CHAINS: '"):
        extra_chains(text)


def test_a_list_that_cannot_be_read_ends_the_start_with_a_sentence(tmp_path: Path):
    environment = os.environ | {"SANDBOX_EXTRA_CHAINS": "ninth=424242", "SANDBOX_DATA": str(tmp_path), "PUBLIC_URL": ""}
    ran = subprocess.run(
        [sys.executable, "-m", "sandbox"], env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    said = "sandbox: SANDBOX_EXTRA_CHAINS: 'ninth=424242' is not a name and a chain id, as in ninth:424242.\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (SANDBOX_CANNOT_START, "", said)


def test_several_chains_are_separated_by_commas():
    assert extra_chains("") == {}
    assert {name: facts.chain_id for name, facts in extra_chains("ninth:424242, tenth:7").items()} == {
        "ninth": 424242,
        "tenth": 7,
    }
