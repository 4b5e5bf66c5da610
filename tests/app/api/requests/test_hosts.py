"""The host names to which the site answers."""

import httpx
import pytest

from app.http.hosts import HostGate
from settings import settings


async def inside(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


@pytest.fixture(autouse=True)
def local_site(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PUBLIC_URL", raising=False)
    monkeypatch.delenv("PORT", raising=False)
    settings.cache_clear()
    yield
    settings.cache_clear()


async def asked(path: str, host: str, method: str = "GET") -> httpx.Response:
    transport = httpx.ASGITransport(app=HostGate(inside))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:3000") as client:
        return await client.request(method, path, headers={"host": host})


@pytest.mark.parametrize("path", ["/", "/dashboard", "/api/servers", "/api/auth/discord", "/health"])
async def test_the_public_name_reaches_everything(path: str):
    assert (await asked(path, "localhost:3000")).status_code == 200
    assert (await asked(path, "LOCALHOST:3000")).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1:3000", "[::1]:3000"])
@pytest.mark.parametrize(
    "path",
    ["/", "/dashboard?a=1", "/api/auth/discord?return=/x", "/api/auth/discord/callback?code=c", "/api/auth/logout"],
)
async def test_pages_under_another_loopback_name_move_to_the_public_one(host: str, path: str):
    answer = await asked(path, host)
    assert (answer.status_code, answer.headers["location"]) == (307, f"http://localhost:3000{path}")
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("host", ["127.0.0.1:3000", "[::1]:3000"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/servers"), ("POST", "/api/auth/logout"), ("GET", "/api/auth/user"), ("GET", "/health")],
)
async def test_programs_may_use_any_loopback_name(host: str, method: str, path: str):
    assert (await asked(path, host, method)).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:3000", "localhost:3001", "localhost", "127.0.0.1", "localhost:3000.evil.example",
     "localhost.:3000", "localhost....:3000", "localhost:03000",
     "user@localhost:3000", "localhost:3000/x", "0.0.0.0:3000", "127.0.0.1.evil.example:3000"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/servers", "/health"])
async def test_foreign_names_are_refused_with_a_sentence(host: str, path: str):
    answer = await asked(path, host)
    assert answer.status_code in {400, 421}
    assert answer.json()["message"]


@pytest.mark.parametrize("host", ["", "localhost:port", "localhost:99999", "[::1"])
async def test_what_is_no_host_is_refused(host: str):
    assert (await asked("/", host)).status_code == 400


async def test_behind_a_proxy_the_public_name_counts_and_the_machine_may_ask_itself(monkeypatch: pytest.MonkeyPatch):
    for name in ("DISCORD_CLIENT_ID", "DISCORD_CLIENT_SECRET", "DISCORD_BOT_TOKEN", "SECRET_KEY"):
        monkeypatch.setenv(name, 32 * "x")
    monkeypatch.setenv("PUBLIC_URL", "https://holdfast.example")
    settings.cache_clear()
    assert (await asked("/", "holdfast.example")).status_code == 200
    assert (await asked("/", "holdfast.example:443")).status_code == 200
    assert (await asked("/health", "127.0.0.1:3000")).status_code == 200
    assert (await asked("/", "127.0.0.1:3000")).headers["location"] == "https://holdfast.example/"
    assert (await asked("/", "www.holdfast.example")).status_code == 421


@pytest.mark.parametrize("host", ["10.0.3.7:3000", "10.0.3.7", "[fd00::7]:3000"])
async def test_monitors_may_ask_by_the_machines_ip_address(host: str):
    for path in ("/health", "/health/deep", "/metrics"):
        assert (await asked(path, host)).status_code == 200
    for path in ("/", "/api/servers", "/api/status", "/health/else"):
        assert (await asked(path, host)).status_code == 421


async def test_a_redirect_never_leaves_for_another_site():
    answer = await asked("http://localhost:3000//evil.example/a b", "127.0.0.1:3000")
    assert answer.headers["location"] == "http://localhost:3000/evil.example/a%20b"


async def test_a_websocket_under_a_foreign_name_is_closed_before_it_opens():
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message["type"])

    scope = {"type": "websocket", "path": "/_event", "headers": [(b"host", b"evil.example")], "query_string": b""}
    await HostGate(inside)(scope, receive, send)
    assert sent == ["websocket.close"]
