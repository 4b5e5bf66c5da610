"""Logs without secrets."""

import logging

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from app.http.access_log import AccessLog
from app.http.caller_address import Proxies
from services.runtime import rejected_requests
from services.runtime.logs import redact, redact_every_log
from settings import settings

SECRET = "s3cret-Value_0123456789abcdefghijklmnopqrstuvw"


@pytest.mark.parametrize(
    "line",
    [
        f"GET /dashboard?session={SECRET} 200",
        f"GET /api/auth/discord/callback?code={SECRET}&state={SECRET}",
        f"GET /x?a=b&session={SECRET}&c=d",
        f"cookie: hf_session={SECRET}; other=1",
        f"Cookie: a=b; hf_session={SECRET}",
        f"{{'cookie': 'a=b; hf_session={SECRET}', 'host': 'x'}}",
        f'{{"cookie":"a=b; hf_session={SECRET}","host":"x"}}',
        f"[(b'cookie', b'a=b; __Host-hf_session={SECRET}')]",
        f"__Host-hf_session={SECRET}",
        f"Set-Cookie: hf_login={SECRET}; HttpOnly",
        f"x-session-id: {SECRET}",
        f"{{'x-session-id': '{SECRET}'}}",
        f"Authorization: Bearer {SECRET}",
        f"(b'authorization', b'Bot {SECRET}')",
        f"sent Bearer {SECRET} to them",
        f"GET /api/wallet-challenge?address={SECRET} 200",
        f"GET /api/servers/7/members?page=2&query={SECRET}",
        f"GET /wallet-verification?wallet={SECRET}&x=1",
        f"GET /api/servers/7/rules.json?token=hf_{SECRET[:43]} 401",
        f"GET /api/servers/7/hf_{SECRET[:43]}/members 404",
        f"a receiver answered 'whsec_{SECRET[:43]} is wrong'",
        f"grant_type=refresh_token&refresh_token={SECRET}&client_secret={SECRET}",
    ],
)
def test_secrets_are_blacked_out(line: str):
    assert SECRET[:43] not in redact(line)
    assert "[redacted]" in redact(line)


@pytest.mark.parametrize("line", ["GET /server-config?serverId=7 200", "ada signed in", "The bot has 3 servers."])
def test_plain_lines_stay_as_they_are(line: str):
    assert redact(line) == line


def test_every_logger_and_traceback_is_redacted(caplog: pytest.LogCaptureFixture):
    present = logging.getLogRecordFactory()
    try:
        redact_every_log()
        redact_every_log()
        logger = logging.getLogger("somebody.elses.package")
        try:
            raise ValueError(f"Cookie: hf_session={SECRET}")
        except ValueError:
            logger.exception("Event %s failed: %s", "x", {"cookie": f"hf_session={SECRET}"})
    finally:
        logging.setLogRecordFactory(present)
    assert "Event x failed" in caplog.text
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text


async def test_the_access_log_names_the_request_and_no_secret(caplog: pytest.LogCaptureFixture):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    caplog.set_level(logging.INFO, "holdfast.access")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=AccessLog(app)), base_url="http://x") as client:
        answer = await client.get(f"/dashboard?session={SECRET}&tab=2")
        named = await client.get("/", headers={"X-Request-Id": "from-the-proxy"})
        odd = await client.get("/", headers={"X-Request-Id": "<script>"})
    line, *_ = [record.getMessage() for record in caplog.records if record.name == "holdfast.access"]
    assert line.startswith("GET /dashboard?session=[redacted]&tab=2 204 ")
    assert len(answer.headers["x-request-id"]) == 12
    assert named.headers["x-request-id"] == "from-the-proxy"
    assert odd.headers["x-request-id"] not in {"<script>", "from-the-proxy", answer.headers["x-request-id"]}


def test_what_is_black_already_stays_as_it_is() -> None:
    once = redact("GET /?session=abc&code=def cookie: hf_session=ghi")
    assert redact(once) == once


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("path", ["/zz%0d%1b%5B2J%0aINFO forged", "/a%e2%80%a8b%c2%85c%0b", "/" + "x" * 60_000])
async def test_a_line_of_the_access_log_is_short_and_moves_no_cursor(
    caplog: pytest.LogCaptureFixture, path: str
) -> None:
    caplog.set_level(logging.INFO, "holdfast.access")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=AccessLog(_nothing)), base_url="http://x") as one:
        await one.get(path)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "holdfast.access"]
    assert line.isprintable()
    assert len(line) < 350


async def _not_there(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def test_long_addresses_that_lead_nowhere_are_counted_and_not_a_line_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    rejected_requests.write()
    caplog.clear()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=AccessLog(_not_there)), base_url="http://x") as one:
        for _ in range(50):
            await one.get("/" + "x" * 5_000)
        await one.get("/short")
    rejected_requests.write()
    lines = [record.getMessage() for record in caplog.records if record.name != "httpx"]
    assert len(lines) == 2
    assert lines[0].startswith("GET /short 404")
    assert lines[1] == "rejected total=50 kinds=1 most=[50x 'request refused: a long address']"


@pytest.mark.parametrize(("trusted", "kept"), [("", False), ("10.0.0.0/8", False), ("127.0.0.1", True)])
async def test_a_request_is_named_by_a_trusted_proxy_alone(
    product: None, monkeypatch: pytest.MonkeyPatch, trusted: str, kept: bool
) -> None:
    monkeypatch.setenv("TRUSTED_PROXIES", trusted)
    settings.cache_clear()
    app = Proxies(AccessLog(_nothing))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://x") as client:
        answer = await client.get("/", headers={"X-Request-Id": "chosen-by-a-caller"})
    assert (answer.headers["x-request-id"] == "chosen-by-a-caller") is kept
