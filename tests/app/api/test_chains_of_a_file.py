"""A ninth chain that only a file adds: a proof, a role and its removal, through calls, the jobs and the doctor."""

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app import doctor
from gateways.chains.catalogue import CHAINS, OWN
from gateways.chains.chain_file import added_chains
from settings import ROOT, settings
from tests.app.api.browsers import Browser
from tests.conftest import running_sandbox
from tests.jobs.town import STRANGER, Town, a_town, until

NINTH = """
[ninth]
title = "Ninth Chain"
chain_id = 424242
coin = "NIN"
explorer = "https://explorer.ninth.example"
block_seconds = 4
confirmations = 2
settled_after = 3
multicall3 = "0xca11bde05977b3631167028862be2a173976ca11"
"""
EIGHT = ["ethereum", "apechain", "polygon", "base", "abstract", "arbitrum", "optimism", "solana"]


@pytest.fixture(scope="module")
def sandbox_url() -> Iterator[str]:
    """A sandbox with one additional chain."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SANDBOX_EXTRA_CHAINS", "ninth:424242")
        with running_sandbox() as url:
            yield url


@pytest.fixture
def file(sandbox_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An operator's file with the chain; the chain's nodes are set."""
    found = tmp_path / "chains.toml"
    found.write_text(NINTH)
    monkeypatch.setenv("CHAINS_FILE", str(found))
    monkeypatch.setenv("RPC_NINTH", f"{sandbox_url}/rpc/ninth {sandbox_url}/rpc2/ninth")
    return found


@pytest.fixture
async def ninth(file: Path, discord: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process as if it had been started with the file: it reads the file as the table of chains does."""
    for key, chain in added_chains(file, OWN).items():
        monkeypatch.setitem(CHAINS, key, chain)
    settings.cache_clear()


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A guild of ada's with carol in it, and a collection on the ninth chain."""
    async with a_town(sandbox_url, "ada", "carol", chain="ninth") as made:
        yield made


@asynccontextmanager
async def jobs(database_url: str, log: Path) -> AsyncIterator[None]:
    """Run the jobs as a separate process, with this process's environment."""
    environment = os.environ | {"DATABASE_URL": database_url, "SWEEP_SECONDS": "86400"}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "jobs", cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


def payload(town: Town, role_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "ruleName": "Ninth", "contractAddress": town.contract, "blockchain": "ninth", "verificationType": "basic",
        "minTokens": 1, "roleId": role_id, "roleName": "Holder", "roleColor": "#5865F2", "serverId": town.server_id,
    } | fields  # fmt: skip


async def test_a_chain_of_a_file_proves_a_wallet_gives_a_role_and_takes_it(
    ninth: None, town: Town, browser: Browser, database_url: str, tmp_path: Path
) -> None:
    async with jobs(database_url, tmp_path / "jobs.log"):
        await browser.sign_in(town.people["ada"]["username"])
        parsed = {"input": town.contract, "blockchain": "ninth"}
        answer = await browser.client.post("/api/collection/parse", json=parsed)
        assert (answer.status_code, answer.json()["blockchain"]) == (200, "ninth"), answer.text
        answer = await browser.client.post("/api/verification-rules", json=payload(town, await town.role("Holder")))
        assert answer.status_code == 201, answer.text
        assert (answer.json()["blockchain"], answer.json()["singleSources"]) == ("ninth", [])

        await browser.sign_in(town.people["carol"]["username"])
        wallet = "0x" + secrets.token_hex(20)
        await town.call("chains/ninth/mint", contract=town.contract, token_id="77", to=wallet)
        asked = (await browser.client.get("/api/wallet-challenge", params={"address": wallet})).json()
        (one,) = [one for one in asked["transaction"]["chains"] if one["chain"] == "ninth"]
        sent = await town.call("chains/ninth/send", **{"from": wallet, "to": one["to"], "value_wei": one["valueWei"]})
        link = f"https://explorer.ninth.example/tx/{sent['hash']}"
        proof = {"walletAddress": wallet, "verificationMethod": "transaction", "transactionHash": link}
        answer = await browser.client.post("/api/verify-wallet", json=proof)
        assert answer.json()["success"], answer.text
        await until(lambda: town.has("carol", "Holder"))

        # No sweep comes for a day, so the sale is noticed by following the chain.
        await town.call("chains/ninth/transfer", contract=town.contract, token_id="77", to=STRANGER)

        async def gone() -> bool:
            return not await town.has("carol", "Holder")

        await until(gone)
        await browser.sign_in(town.people["ada"]["username"])
        answer = await browser.client.get(f"/api/servers/{town.server_id}/health")
        named = {one["name"]: one["state"] for one in answer.json()["providers"]}
        assert (named["Ninth Chain node 1"], named["Ninth Chain node 2"]) == ("good", "good")


async def test_without_the_file_the_chain_is_refused(town: Town, browser: Browser) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    answer = await browser.client.post("/api/verification-rules", json=payload(town, await town.role("Holder")))
    said = f"ninth is not one of the chains: {', '.join(EIGHT)}."
    assert (answer.status_code, answer.json()["message"]) == (400, said)
    answer = await browser.client.post("/api/collection/parse", json={"input": town.contract, "blockchain": "ninth"})
    assert (answer.status_code, answer.json()["message"]) == (400, "Collections on Ninth cannot be used in rules.")


def test_the_doctor_names_the_chain_and_asks_its_nodes_which_they_serve(
    file: Path, sandbox_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for key, chain in added_chains(file, OWN).items():
        monkeypatch.setitem(CHAINS, key, chain)
    monkeypatch.setenv("RPC_NINTH", f"{sandbox_url}/rpc/ninth {sandbox_url}/rpc2/base")
    monkeypatch.setenv("RPC_NINHT", "https://x")
    assert doctor.main() == 1
    said = capsys.readouterr().out
    assert "ok       Chains of your own: CHAINS_FILE adds Ninth Chain (ninth, chain id 424242).\n" in said
    assert "ok       Chain ninth: Ninth Chain (node 1) serves chain 424242; its newest block is " in said
    assert "lacking  Chain ninth: Ninth Chain (node 2): it serves chain 8453, not 424242.\n" in said
    assert "advice   Chains of your own: RPC_NINHT is set, and no chain is called ninht.\n" in said


# One process for all: each of them would load the table of chains, and with it every client.
STARTS = """
import runpy, sys
sys.argv = ["app"]
for module in ("app", "app.doctor", "app.live_check"):
    try:
        runpy.run_module(module, run_name="__main__")
    except SystemExit as end:
        print(f"ended with {end.code}")
"""


def test_a_file_that_cannot_be_taken_stops_every_start_with_a_sentence(file: Path, tmp_path: Path) -> None:
    file.write_text(NINTH.replace("424242", "8453"))
    done = subprocess.run(
        [sys.executable, "-c", STARTS], cwd=ROOT, env=os.environ | {"DATA_DIR": str(tmp_path)}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr
    started, examined, asked, end = done.stdout.split("ended with 1\n")
    sentence = f"CHAINS_FILE {file}: [ninth] chain_id: 8453 is base's."
    assert started.endswith(f"holdfast| {sentence}\n")
    assert f"lacking  Chains of your own: {sentence}\n" in examined
    assert asked.startswith(sentence)
    assert end == ""
