"""A sandbox with only Discord and Solana, in this process, as an outside client sees it over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from aiohttp import web

from sandbox.assembly import WholeSandbox
from sandbox.server import build_app
from tests.conftest import free_port

OTTERS = "tidepool-otters"
STRANGER = "86xCnPeV69n6t3DnyGvkKobf9FdN2H9oiVDdaMpo2MMY"


class Otters:
    """One running sandbox."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def world(self) -> dict[str, Any]:
        return (await self.http.get("/control/world")).json()

    async def wallet(self, username: str) -> str:
        """Return a person's Solana address."""
        people = {user["username"]: user for user in (await self.world())["users"]}
        return people[username]["wallets"]["solana"]

    async def collection(self, slug: str = OTTERS) -> dict[str, Any]:
        listed = (await self.world())["chains"]["solana"]["collections"]
        return next(collection for collection in listed if collection["slug"] == slug)

    async def owner(self, token: str, slug: str = OTTERS) -> str | None:
        """Return the owner of a token, or None."""
        tokens = (await self.collection(slug))["tokens"]
        return next((next(iter(one["owners"])) for one in tokens if one["id"] == token), None)

    async def act(self, action: str, **body: Any) -> dict[str, Any]:
        """Make a control call that must succeed, and return its answer."""
        response = await self.http.post(f"/control/chains/solana/{action}", json=body)
        assert response.status_code == 200, response.text
        return response.json()

    async def refused(self, action: str, **body: Any) -> tuple[int, str]:
        """Return the status and message of a control call that must not succeed."""
        response = await self.http.post(f"/control/chains/solana/{action}", json=body)
        return response.status_code, response.json()["message"]

    async def ask(self, method: str, params: Any = None) -> httpx.Response:
        asked = {"jsonrpc": "2.0", "id": "x", "method": method, **({} if params is None else {"params": params})}
        return await self.http.post("/solana", json=asked)

    async def rpc(self, method: str, *params: Any, **named: Any) -> Any:
        """Return the result of a call, with parameters by position or by name."""
        answer = (await self.ask(method, named or list(params))).json()
        assert "error" not in answer, answer
        assert answer["id"] == "x"
        return answer["result"]

    async def error(self, method: str, *params: Any, **named: Any) -> tuple[int, str]:
        """Return the code and message of a call that is refused."""
        fault = (await self.ask(method, named or list(params))).json()["error"]
        return fault["code"], fault["message"]

    async def fault(self, kind: str, seconds: float = 60) -> None:
        body = {"target": "solana", "kind": kind, "seconds": seconds}
        assert (await self.http.post("/control/faults", json=body)).status_code == 200


@asynccontextmanager
async def running(data: Path) -> AsyncIterator[Otters]:
    """Run a sandbox over this directory; not strict, as tests request lists more than twice a second."""
    sandbox = WholeSandbox(data, free_port(), frozenset({"evm", "marketplaces"}))
    runner = web.AppRunner(build_app(sandbox), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", sandbox.port).start()
    try:
        async with httpx.AsyncClient(base_url=sandbox.url, trust_env=False, timeout=10) as http:
            yield Otters(http)
    finally:
        await runner.cleanup()
