"""A sandbox with only Discord, in this process and on a free port."""

import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from aiohttp import web

from sandbox.assembly import WholeSandbox
from sandbox.server import build_app
from tests.conftest import free_port
from tests.sandbox.chains.nodes import Nodes, Process, running
from tests.sandbox.control import SandboxControl

CLUB, BASE, QUIET = "1170000000000001000", "1170000000000002000", "1170000000000003000"
HOLDER, COLLECTOR, ADMIN, BOT_ROLE, FOUNDER = 1, 2, 5, 50, 6
CALLBACK = "http://localhost:3000/api/auth/discord/callback"
T = TypeVar("T")
FUZZING = "FUZZ_EXAMPLES" in os.environ


def some(odd: Sequence[T], place: int) -> Sequence[T]:
    """Return every third odd value, for each place from another one on; all of them in `make fuzz`."""
    return odd if FUZZING else odd[place % 3 :: 3]


def role_of(guild: str, offset: int) -> str:
    """Return the fixed id of a guild's role."""
    return str(int(guild) + offset)


@dataclass
class Outside:
    """An outside client with HTTP only. Every REST exchange is recorded in the judge's form."""

    sandbox: WholeSandbox
    http: httpx.AsyncClient
    calls: SandboxControl
    recorded: list[dict[str, Any]] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, str]:
        return self.sandbox.settings

    async def control(self, path: str, /, **body: Any) -> Any:
        response = await self.calls.post(f"/control/{path}", json=body)
        assert response.status_code < 400, response.text
        return response.json()

    async def world(self) -> dict[str, Any]:
        return (await self.calls.get("/control/world")).json()

    async def guild(self, guild_id: str) -> dict[str, Any]:
        return next(guild for guild in (await self.world())["guilds"] if guild["id"] == guild_id)

    async def member(self, guild_id: str, username: str) -> dict[str, Any]:
        return next(m for m in (await self.guild(guild_id))["members"] if m["username"] == username)

    async def bot(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """Make a REST call with the bot's token."""
        return await self.rest(method, path, f"Bot {self.settings['DISCORD_BOT_TOKEN']}", body, **more)

    async def rest(self, method: str, path: str, authorization: str, body: Any = None, **more: Any) -> httpx.Response:
        headers = {"Authorization": authorization, **more.pop("headers", {})}
        content = {} if body is None else {"json": body}
        response = await self.http.request(method, f"/discord/api/v10{path}", headers=headers, **content, **more)
        self.record(method, path, body, response, params=more.get("params"))
        return response

    def record(self, method: str, path: str, body: Any, response: httpx.Response, params: Any = None) -> None:
        self.recorded.append(
            {
                "method": method,
                "path": path,
                "query": {key: str(value) for key, value in (params or {}).items()},
                "request_json": body,
                "request_content_type": response.request.headers.get("content-type"),
                "status": response.status_code,
                "response_json": json.loads(response.content) if response.content else None,
                "response_headers": dict(response.headers),
            }
        )

    async def authorize(self, username: str, scope: str = "identify guilds", **more: str) -> httpx.Response:
        query = {
            "client_id": self.settings["DISCORD_CLIENT_ID"],
            "scope": scope,
            "response_type": "code",
            "redirect_uri": CALLBACK,
            "as": username,
            **more,
        }
        return await self.http.get("/discord/oauth2/authorize", params=query)

    async def token(self, path: str = "/oauth2/token", **form: str) -> httpx.Response:
        """Make a token call with the client's credentials in the form."""
        body = {
            "client_id": self.settings["DISCORD_CLIENT_ID"],
            "client_secret": self.settings["DISCORD_CLIENT_SECRET"],
            **form,
        }
        response = await self.http.post(f"/discord/api/v10{path}", data=body)
        self.record("POST", path, body, response)
        return response

    async def signed_in(self, username: str, scope: str = "identify guilds") -> dict[str, Any]:
        """Return the token response after this person agreed."""
        redirect = await self.authorize(username, scope)
        code = httpx.URL(redirect.headers["location"]).params["code"]
        answer = await self.token(grant_type="authorization_code", code=code, redirect_uri=CALLBACK)
        return answer.json()


@pytest.fixture
async def discord(tmp_path: Path) -> AsyncIterator[Outside]:
    """A fresh world, as strict as Discord except for the pace of identifies."""
    sandbox = WholeSandbox(tmp_path / "sandbox", free_port(), frozenset({"chains", "marketplaces"}), strict=True)
    sandbox.discord.gateway.starts.set(max_concurrency=1_000, left=None)
    runner = web.AppRunner(build_app(sandbox), access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", sandbox.port).start()
    async with httpx.AsyncClient(base_url=sandbox.url) as http, SandboxControl(sandbox.url) as calls:
        yield Outside(sandbox, http, calls)
    await runner.cleanup()


@pytest.fixture
def sandbox_process(tmp_path: Path) -> Iterator[Process]:
    """A started sandbox process."""
    process = Process(tmp_path / "sandbox", free_port())
    process.start()
    yield process
    process.kill()


@pytest.fixture(scope="session")
def whole_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """The sandbox with all its parts that the tests of this folder share."""
    with running(tmp_path_factory.mktemp("whole") / "sandbox") as nodes:
        yield nodes


@pytest.fixture(scope="module")
def nodes(whole_sandbox: Nodes) -> Nodes:
    """The same sandbox with what it has at the start; only its blocks go on."""
    for method, path in (("POST", "reset"), ("DELETE", "limits"), ("DELETE", "faults")):
        assert whole_sandbox.http.request(method, f"/control/{path}").is_success
    return whole_sandbox
