"""The chain that benchmarks read: a real local EVM node with ten ERC-721 collections, minted token by token."""

import hashlib
import json
import os
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eth_abi.abi import encode

from sandbox.tools import find_anvil
from tests.conftest import free_port, wait_until_open

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = json.loads((ROOT / "sandbox" / "contracts" / "artefacts.json").read_text())
MULTICALL3 = "0xcA11bde05977b3631167028862bE2a173976CA11"
CHAIN, CHAIN_ID = "base", 8453
COLLECTIONS, SUPPLY = 10, 10_000
MOVES_A_TRANSACTION = 2_000
NOBODY = "0x" + 40 * "0"
LOADING_GAS, READING_GAS = 10**12, 50_000_000
"""What one call may use while the chain is filled, and afterwards: geth's and reth's default (performance facts, 1)."""


def wallet(number: int) -> str:
    """Return the address of a wallet: the same in every run, and spread as real addresses are."""
    return "0x" + hashlib.sha256(f"wallet {number}".encode()).hexdigest()[:40]


def holder(collection: int, token: int, holders: int) -> int:
    """Return the number of the wallet that holds a token: uneven, so that some hold several and some none."""
    return (token * (2 * collection + 1) + token * token // 7) % holders


class NftChain:
    """The node and what is on it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.contracts: list[str] = []
        self.gas = LOADING_GAS // 10

    def rpc(self, method: str, *params: Any) -> Any:
        """Make one JSON-RPC call and return its result. Raises RuntimeError if it fails."""
        return self.batch(method, [params])[0]

    def batch(self, method: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
        """Make a JSON-RPC call for each of these parameters in one request. Raises RuntimeError if one fails."""
        asked = [{"jsonrpc": "2.0", "id": at, "method": method, "params": params} for at, params in enumerate(calls)]
        request = urllib.request.Request(self.url, json.dumps(asked).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            said = json.loads(answer.read())
        if faults := [one["error"] for one in said if "error" in one]:
            raise RuntimeError(f"{method}: {faults[0]}")
        return [one["result"] for one in said]

    def send(self, to: str | None, data: bytes) -> dict[str, Any]:
        """Send one transaction from the node's first account and return its receipt."""
        call = {"from": self.rpc("eth_accounts")[0], "data": "0x" + data.hex(), "gas": hex(self.gas)}
        name = self.rpc("eth_sendTransaction", call | ({} if to is None else {"to": to}))
        deadline = time.monotonic() + 120
        while (receipt := self.rpc("eth_getTransactionReceipt", name)) is None:
            if time.monotonic() > deadline:
                raise RuntimeError("the node does not mine")
            time.sleep(0.02)
        if receipt["status"] != "0x1":
            raise RuntimeError(f"a transaction of {len(data)} bytes failed")
        return receipt

    def deploy(self, name: str, metadata: str = "https://example.org/") -> str:
        """Deploy a collection kept by the node's first account, with metadata below `metadata`; return its address."""
        keeper = self.rpc("eth_accounts")[0]
        return self.create("Collection721", ["string", "string", "string", "address"], [name, "B", metadata, keeper])

    def create(self, artefact: str, types: Sequence[str], arguments: Sequence[Any]) -> str:
        """Create a contract with these arguments of its constructor; return its address."""
        made = self.send(None, bytes.fromhex(ARTEFACTS[artefact]["bytecode"][2:]) + encode(types, arguments))
        return str(made["contractAddress"]).lower()

    def mint(self, contract: str, first: int, owners: list[str]) -> None:
        """Mint tokens from `first` on, one for each of `owners`."""
        self.settle(contract, [(NOBODY, owner, token, 1) for token, owner in enumerate(owners, start=first)])

    def settle(self, contract: str, moves: Sequence[tuple[str, str, int, int]]) -> None:
        """Make transfers, MOVES_A_TRANSACTION at a time: from, to, token and amount of each."""
        settle = next(v for k, v in ARTEFACTS["Collection721"]["selectors"].items() if k.startswith("settle("))
        for start in range(0, len(moves), MOVES_A_TRANSACTION):
            some = moves[start : start + MOVES_A_TRANSACTION]
            # Packed by hand: the codec would take longer than the chain.
            words = [_word(32), _word(len(some))]
            for before, after, token, amount in some:
                words += [_word(int(before, 16)), _word(int(after, 16)), _word(token), _word(amount)]
            self.send(contract, bytes.fromhex(settle[2:]) + b"".join(words))

    def fill(self, holders: int, collections: int = COLLECTIONS, supply: int = SUPPLY) -> None:
        """Deploy the collections and mint all of their tokens to the first `holders` wallets."""
        self.rpc("anvil_setCode", MULTICALL3, ARTEFACTS["Multicall3"]["runtime"])
        for number in range(collections):
            contract = self.deploy(f"Collection {number}")
            self.mint(contract, 1, [wallet(holder(number, token, holders)) for token in range(supply)])
            self.contracts.append(contract)
        self.rpc("evm_setBlockGasLimit", hex(READING_GAS))
        self.gas = READING_GAS // 2
        self.refresh()

    def refresh(self) -> None:
        """Mine a block, so that the head is not stale."""
        self.rpc("anvil_mine", "0x1")

    @contextmanager
    def mining(self) -> Iterator[None]:
        """A new block every five seconds during the block, for work that takes longer than a head stays fresh.

        Not while aggregates are read: asked at its newest block, anvil sometimes answers at the one that it is mining,
        and the product refuses such an answer.
        """
        self.rpc("evm_setIntervalMining", 5)
        try:
            yield
        finally:
            self.rpc("evm_setIntervalMining", 0)


def _word(value: int) -> bytes:
    return value.to_bytes(32, "big")


@contextmanager
def nft_chain(*options: str) -> Iterator[NftChain]:
    """An empty node; it ends with the block."""
    binary = find_anvil(ROOT / "data" / "tools")
    if binary is None:
        raise SystemExit("No EVM node: `make bench` installs it, or name one with the variable ANVIL.")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="hf-bench-", dir="/tmp") as home:
        fixed = ["--chain-id", str(CHAIN_ID), "--gas-limit", str(LOADING_GAS), "--hardfork", "prague",
                 "--prune-history", "1000", "--no-request-size-limit", "--quiet"]  # fmt: skip
        process = subprocess.Popen(
            [binary, "--port", str(port), *fixed, *options], env=os.environ | {"HOME": home, "TMPDIR": home}
        )
        try:
            wait_until_open(port, process)
            yield NftChain(f"http://127.0.0.1:{port}")
        finally:
            process.kill()
            process.wait()
