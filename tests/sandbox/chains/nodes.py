"""A sandbox in a process of its own, and one with its chains and marketplaces, as an outside client sees it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
from eth_account import Account

from sandbox.assembly import product_settings
from tests.conftest import free_port

MELLOW_CATS, CORNER_SHOP = "mellow-cats", "corner-shop-cards"
STRANGER = "0x00000000000000000000000000000000000ace00"


@dataclass
class Process:
    """A sandbox in its own process, so that it can be killed."""

    data: Path
    port: int
    strict: bool = True
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def bot(self) -> dict[str, str]:
        return {"Authorization": f"Bot {product_settings(self.port)['DISCORD_BOT_TOKEN']}"}

    def start(self) -> None:
        environment = {
            **os.environ,
            "SANDBOX_DATA": str(self.data),
            "SANDBOX_PORT": str(self.port),
            "SANDBOX_WITHOUT": "chains,marketplaces",
            "PUBLIC_URL": "",
            **({"SANDBOX_STRICT": "1"} if self.strict else {}),
        }
        self.process = subprocess.Popen([sys.executable, "-m", "sandbox"], env=environment, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert b"/console" in self.process.stdout.readline()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None


class Nodes(Process):
    """The process with everything switched on, and a client for it."""

    http: httpx.Client

    def start(self) -> None:
        own = {"SANDBOX_DATA": str(self.data), "SANDBOX_PORT": str(self.port), "SANDBOX_STRICT": "1", "PUBLIC_URL": ""}
        environment = {**os.environ, **own}
        environment.pop("SANDBOX_WITHOUT", None)
        self.process = subprocess.Popen([sys.executable, "-m", "sandbox"], env=environment, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert b"/console" in self.process.stdout.readline()

    def world(self) -> dict[str, Any]:
        return self.http.get("/control/world").json()

    def wallet(self, username: str) -> str:
        """Return a person's EVM address in lower case."""
        people = {user["username"]: user for user in self.world()["users"]}
        return people[username]["wallets"]["evm"].lower()

    def collection(self, slug: str, chain: str = "base") -> dict[str, Any]:
        listed = self.world()["chains"][chain]["collections"]
        return next(collection for collection in listed if collection["slug"] == slug)

    def owners(self, slug: str, token: str, chain: str = "base") -> dict[str, str]:
        """Return address → amount of one token; empty when nobody holds it."""
        tokens = self.collection(slug, chain)["tokens"]
        return next((one["owners"] for one in tokens if one["id"] == token), {})

    def act(self, action: str, chain: str = "base", **body: Any) -> dict[str, Any]:
        """Make a control call that must succeed, and return its answer."""
        response = self.http.post(f"/control/chains/{chain}/{action}", json=body)
        assert response.status_code == 200, response.text
        return response.json()

    def refused(self, action: str, chain: str = "base", **body: Any) -> tuple[int, str]:
        """Return the status and message of a control call that must not succeed."""
        response = self.http.post(f"/control/chains/{chain}/{action}", json=body)
        return response.status_code, response.json()["message"]

    def rpc(self, method: str, *params: Any, chain: str = "base", front: str = "rpc") -> Any:
        """Make a JSON-RPC call and return its result."""
        answer = self.ask(method, *params, chain=chain, front=front).json()
        assert "error" not in answer, answer
        return answer["result"]

    def ask(self, method: str, *params: Any, chain: str = "base", front: str = "rpc") -> httpx.Response:
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        return self.http.post(f"/{front}/{chain}", json=asked)

    def balance(self, slug: str, owner: str, chain: str = "base", front: str = "rpc", block: str = "latest") -> int:
        """Return a token balance by ERC-721's balanceOf over the wire."""
        data = "0x70a08231" + owner[2:].rjust(64, "0")
        call = {"to": self.collection(slug, chain)["contract"], "data": data}
        return int(self.rpc("eth_call", call, block, chain=chain, front=front), 16)

    def block(self, chain: str = "base", front: str = "rpc") -> int:
        return int(self.rpc("eth_blockNumber", chain=chain, front=front), 16)

    def signed(self, username: str, to: str, data: str, value: int = 0, ahead: int = 0) -> str:
        """Send a person's own transaction on Base as an outside client would, and return its hash.

        Without `to` it deploys what `data` returns. `ahead` is how many transactions with earlier nonces are missing.
        """
        account = Account.from_key("0x" + sha256(f"sandbox wallet of {username}".encode()).hexdigest())
        transaction = {
            "to": bytes.fromhex(to[2:]),
            "data": data,
            "value": value,
            "gas": 400_000,
            "maxFeePerGas": 10**9,
            "maxPriorityFeePerGas": 1,
            "nonce": int(self.rpc("eth_getTransactionCount", account.address, "latest"), 16) + ahead,
            "chainId": 8453,
        }
        return self.rpc("eth_sendRawTransaction", "0x" + account.sign_transaction(transaction).raw_transaction.hex())

    @contextmanager
    def fault(self, target: str, kind: str) -> Iterator[None]:
        """A fault that lasts for the block."""
        fault = {"target": target, "kind": kind, "seconds": 120}
        assert self.http.post("/control/faults", json=fault).status_code == 200
        try:
            yield
        finally:
            self.http.delete("/control/faults")


@contextmanager
def running(data: Path) -> Iterator[Nodes]:
    """A started sandbox, which ends with the block."""
    nodes = Nodes(data, free_port())
    nodes.start()
    try:
        with httpx.Client(base_url=nodes.url, trust_env=False, timeout=20) as nodes.http:
            yield nodes
    finally:
        nodes.kill()
