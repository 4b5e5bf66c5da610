"""The strict sandbox's nodes: each chain refuses what a real plan refuses, in the wording of real nodes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.chains.plans import PLANS, results_denied
from tests.conftest import free_port
from tests.sandbox.conftest import Process

NOBODY = "0x" + "77" * 20
FRONTS = ("rpc", "rpc2")


@pytest.fixture
def http(sandbox_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=sandbox_url, trust_env=False, timeout=20) as client:
        yield client


def ask(http: httpx.Client, chain: str, method: str, *params: Any, front: str = "rpc") -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON-RPC answer."""
    answer = http.post(f"/{front}/{chain}", json={"jsonrpc": "2.0", "id": 5, "method": method, "params": list(params)})
    return answer.status_code, answer.json()


def refused(http: httpx.Client, chain: str, method: str, *params: Any, front: str = "rpc") -> tuple[int, int, str]:
    """Return the status, and the error's code and message."""
    status, said = ask(http, chain, method, *params, front=front)
    assert said["id"] == 5, said
    return status, said["error"]["code"], said["error"]["message"]


def logs(first: int, last: int, **more: Any) -> dict[str, Any]:
    return {"fromBlock": hex(first), "toBlock": hex(last), **more}


def test_the_limits_of_every_chain_are_stated(http: httpx.Client) -> None:
    told = http.get("/control/limits").json()
    assert told["strict"] is True
    assert set(told["rpc"]) == set(PLANS)
    kinds = {chain: (one["log_blocks"], one["log_results"], one["batch"]) for chain, one in told["rpc"].items()}
    assert kinds["arbitrum"] == (10, None, 100)
    assert kinds["apechain"] == (500, None, 3)
    assert kinds["base"] == (10_000, None, 10)
    assert kinds["optimism"] == (None, 10_000, 10)
    assert [chain for chain, one in told["rpc"].items() if one["logs_need_address"]] == ["ethereum"]
    assert [chain for chain, one in told["rpc"].items() if not one["state_override"]] == ["polygon"]
    assert [chain for chain, one in told["rpc"].items() if not one["finalized"]] == ["apechain"]


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize(
    ("chain", "blocks", "status", "code", "words"),
    [
        ("arbitrum", 10, 400, -32600, "up to a 10 block range"),
        ("apechain", 500, 200, -32602, "query exceeds max block range 500"),
        ("base", 10_000, 200, -32614, "eth_getLogs is limited to a 10,000 range"),
        ("polygon", 10_000, 400, 35, "ranges over 10000 blocks are not supported on freetier"),
        ("ethereum", 50_000, 200, -32701, "exceed maximum block range: 50000"),
    ],
)
def test_logs_of_more_blocks_than_the_plan_gives_are_refused(
    http: httpx.Client, front: str, chain: str, blocks: int, status: int, code: int, words: str
) -> None:
    found = refused(http, chain, "eth_getLogs", logs(0, blocks, address=NOBODY), front=front)
    assert found[:2] == (status, code)
    assert words in found[2]
    assert refused(http, chain, "eth_newFilter", logs(0, blocks, address=NOBODY), front=front)[1] == code
    assert ask(http, chain, "eth_getLogs", logs(1, blocks, address=NOBODY), front=front)[1]["result"] == []
    block = ask(http, chain, "eth_getBlockByNumber", "latest", False)[1]["result"]["hash"]
    assert ask(http, chain, "eth_getLogs", {"blockHash": block, "address": NOBODY})[1]["result"] == []


def test_tags_and_missing_ends_count_as_the_blocks_they_stand_for(http: httpx.Client) -> None:
    for wanted in ({"fromBlock": "earliest"}, {"fromBlock": "0x0", "toBlock": "latest"}, logs(0, 10)):
        assert refused(http, "arbitrum", "eth_getLogs", wanted)[1] == -32600
    for wanted in ({}, {"fromBlock": "latest"}, logs(0, 9)):
        assert ask(http, "arbitrum", "eth_getLogs", wanted)[1]["result"] == []


def test_logs_without_an_address_are_refused_on_one_chain(http: httpx.Client) -> None:
    status, code, said = refused(http, "ethereum", "eth_getLogs", logs(1, 5))
    assert (status, code) == (200, -32701)
    assert said.startswith("Please specify an address in your request")
    assert "result" in ask(http, "optimism", "eth_getLogs", logs(1, 5))[1]


@pytest.mark.parametrize(("chain", "code"), [("optimism", -32005), ("abstract", -32602)])
def test_more_results_than_the_plan_gives_are_refused_with_a_range_that_fits(chain: str, code: int) -> None:
    plan = PLANS[chain]
    assert results_denied(plan, 10_000, 1, 100) is None
    denial = results_denied(plan, 10_001, 1, 101)
    assert denial is not None
    assert denial.error["code"] == code
    assert "more than 10000 results. Try with this block range [0x1, 0x33]" in denial.error["message"]


@pytest.mark.parametrize(
    ("chain", "most", "status", "code", "listed"),
    [("polygon", 3, 500, 31, False), ("base", 10, 200, -32014, False), ("arbitrum", 100, 200, -32600, True)],
)
def test_larger_batches_are_refused_as_a_whole(
    http: httpx.Client, chain: str, most: int, status: int, code: int, listed: bool
) -> None:
    calls = [{"jsonrpc": "2.0", "id": n, "method": "eth_chainId", "params": []} for n in range(most + 1)]
    answer = http.post(f"/rpc/{chain}", json=calls)
    said = answer.json()
    assert (answer.status_code, isinstance(said, list)) == (status, listed)
    assert (said[0] if listed else said)["error"]["code"] == code
    assert len(http.post(f"/rpc/{chain}", json=calls[:most]).json()) == most


def test_one_chain_takes_no_state_override_and_one_knows_no_finalized_block(http: httpx.Client) -> None:
    override = {NOBODY: {"code": "0x60016000526020"}}
    assert refused(http, "polygon", "eth_call", {"to": NOBODY}, "latest", override)[1:] == (
        -32602, "too many arguments, want at most 2",
    )  # fmt: skip
    assert "result" in ask(http, "base", "eth_call", {"to": NOBODY}, "latest", override)[1]
    assert refused(http, "apechain", "eth_getBlockByNumber", "finalized", False)[1:] == (
        -32000, "finalized block not found",
    )  # fmt: skip
    for tag in ("safe", "finalized"):
        for wanted in ({"fromBlock": tag}, {"fromBlock": "earliest", "toBlock": tag}):
            for method in ("eth_getLogs", "eth_newFilter"):
                said = refused(http, "apechain", method, wanted)
                assert said == (200, -32000, f"{tag} block not found"), (method, wanted)
    assert http.post("/control/chains/base/mine", json={"blocks": 8}).status_code == 200
    assert "number" in ask(http, "base", "eth_getBlockByNumber", "finalized", False)[1]["result"]


def test_a_sandbox_that_is_not_strict_gives_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SANDBOX_STRICT", raising=False)
    process = Process(tmp_path / "kind", free_port(), strict=False)
    process.start()
    told = httpx.get(f"{process.url}/control/limits", trust_env=False).json()
    process.kill()
    assert (told["strict"], told["rpc"]) == (False, {})
