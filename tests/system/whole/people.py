"""People who use the product only by its calls, and waits for the results."""

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.product import Product

FOUND_SECONDS = 60


class Person:
    """A person of the sandbox with a browser's cookies, or with a program's header."""

    def __init__(self, product: Product, username: str, *, by_header: bool = False) -> None:
        self.product = product
        self.username = username
        self.client = httpx.Client(base_url=product.url, timeout=60)
        self._sign_in()
        if by_header:
            session_id = next(iter(self.client.cookies.values()))
            self.client.cookies.clear()
            self.client.headers["x-session-id"] = session_id

    def _sign_in(self) -> None:
        leaves = self.client.get("/api/auth/discord")
        agreed = httpx.get(f"{leaves.headers['location']}&as={self.username}")
        returned = self.client.get(agreed.headers["location"])
        assert "session=" in returned.headers["location"], returned.headers

    def get(self, path: str, **query: Any) -> Any:
        """Make a GET call that must succeed, and return its JSON."""
        return self._json(self.client.get(path, params=query))

    def post(self, path: str, **body: Any) -> Any:
        """Make a POST call that must succeed, and return its JSON."""
        return self._json(self.client.post(path, json=body))

    def delete(self, path: str) -> Any:
        """Make a DELETE call that must succeed, and return its JSON."""
        return self._json(self.client.delete(path))

    @staticmethod
    def _json(answer: httpx.Response) -> Any:
        assert answer.is_success, f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}"
        return answer.json()

    def server(self, guild: str) -> dict[str, Any]:
        """Return the person's server of that name, once the bot has stored the guild."""
        deadline = time.monotonic() + FOUND_SECONDS
        while not (found := [server for server in self.get("/api/servers") if server["name"] == guild]):
            assert time.monotonic() < deadline, f"{self.username} has no server called {guild}"
            time.sleep(0.5)
            self.post("/api/admin/sync-servers")
        return found[0]

    def prove(self) -> dict[str, Any]:
        """Put the code into the bio of the person's own wallet and have it checked."""
        address = self.product.wallet(self.username)
        code = self.get("/api/wallet-challenge", address=address)["code"]
        self.product.control(f"opensea/accounts/{address}", {"bio": f"gm {code}"}, "PUT")
        return self.post("/api/verify-wallet", walletAddress=address, verificationMethod="opensea_bio")

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.1)


def collection(product: Product, name: str) -> str:
    """Deploy an ERC-721 collection on Base and return its contract."""
    return product.control("chains/base/deploy", {"standard": "ERC721", "name": name, "slug": name.lower()})["contract"]


def rule(product: Product, contract: str, guild: str, role: str, server_id: int) -> dict[str, Any]:
    """Return the payload of a basic rule for one token."""
    return {
        "ruleName": f"{role} by calls", "contractAddress": contract, "blockchain": "base",
        "verificationType": "basic", "minTokens": 1, "roleId": product.role(guild, role), "roleName": role,
        "serverId": server_id,
    }  # fmt: skip
