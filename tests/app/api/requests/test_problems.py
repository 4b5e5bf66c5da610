"""The answers of calls that cannot do what they were asked to."""

import re
import sys
import time
from collections.abc import Callable

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.exc import TimeoutError as NoneFree
from sqlmodel import delete

import models
from app.api import api
from models import Handover, User, now, transaction
from models.db.session import AsyncSession
from services.accounts import sessions
from services.core.actors import Actor
from services.guilds.gateway import shards
from services.guilds.gateway.shards import BotProcess, ShardPart
from services.servers import servers
from settings import version
from tests.app.api.browsers import PUBLIC_URL, Browser

OPEN = {
    "/api/auth/logout", "/health", "/api/status", "/api/auth/discord", "/api/auth/discord/connect",
    "/api/auth/discord/callback",
}  # fmt: skip


async def signed_in() -> dict[str, str]:
    """Open a session without Discord, and return its header."""
    async with transaction() as db:
        user = User(discord_id="42", username="zoe")
        db.add(user)
        await db.flush()
        return {"x-session-id": await sessions.open_session(db, user.id or 0, "")}


def calls() -> list[tuple[str, str]]:
    return [
        (method.upper(), re.sub(r"\{[^}]+\}", "1", path))
        for path, methods in api.openapi()["paths"].items()
        for method in methods
        if path not in OPEN
    ]


async def test_every_call_needs_a_session_before_it_looks_at_anything(browser: Browser):
    wrong: dict[tuple[str, str], object] = {}
    for method, path in calls():
        answer = await browser.client.request(method, path, json={"nonsense": True})
        kept = answer.headers.get("cache-control"), answer.headers.get("x-content-type-options")
        found = answer.status_code, answer.json(), kept
        if found != (401, {"message": "Unauthorized"}, ("no-store", "nosniff")):
            wrong[method, path] = found
    assert wrong == {}


async def test_a_path_that_is_no_call_is_not_found(browser: Browser):
    wrong: dict[tuple[str, str], object] = {}
    for path in ("/api", "/api/", "/api/nothing", "/api/servers/", "/api/auth/user/1", "/api/%00"):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            answer = await browser.client.request(method, path)
            if (answer.status_code, answer.json()) != (404, {"message": "There is no such call."}):
                wrong[method, path] = answer.status_code, answer.text
    assert wrong == {}


@pytest.mark.parametrize(
    ("method", "path", "taken"),
    [
        ("PUT", "/api/verification-rules", "GET, HEAD, POST"),
        ("POST", "/api/verification-rules/1", "DELETE, GET, HEAD, PATCH"),
        ("PUT", "/api/auth/logout", "GET, POST"),
        ("OPTIONS", "/api/me", "DELETE"),
        ("TRACE", "/api/servers", "GET, HEAD, POST"),
        ("PROPFIND", "/api/servers", "GET, HEAD, POST"),
        ("POST", "/api/docs", "GET, HEAD"),
        ("POST", "/health", "GET, HEAD"),
    ],
)
async def test_a_call_with_another_method_says_which_ones_it_takes(
    browser: Browser, method: str, path: str, taken: str
) -> None:
    answer = await browser.client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, taken)
    assert answer.json()["message"].startswith("This call takes ")
    assert list(answer.json()) == ["message"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"serverId": 1, "expression": {"args": ' + b"[" * 800 + b"]" * 800 + b"}}",
        b'{"serverId": 1, "args": ' + b"[" * 32 + b"]" * 32 + b"}",
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b'{"serverId": {}}',
        b'{"serverId": true}',
        b'{"serverId": 1, "ruleName": 7}',
        b'{"serverId": 1, "ruleName": "a\\u0000b"}',
        b'{"serverId": 1, "ruleName": "\\ud800"}',
        b'{"serverId": 1, "expression": {"all": [{"type": "a\\u0000"}]}}',
        b'{"serverId": 1, "tokenIds": "1,2"}',
        b"\xff\xfe",
        b"[" * 60_000,
        b'{"serverId": ' + b"9" * 5_000 + b"e}",
    ],
)
async def test_what_is_not_the_calls_shape_is_422(browser: Browser, body: bytes):
    headers = await signed_in() | {"content-type": "application/json"}
    answer = await browser.client.post("/api/verification-rules", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert set(answer.json()) == {"message"}
    assert "Value error" not in answer.json()["message"]


NO_JSON = "The body is not valid JSON: line {line}, character {column}."
NO_OBJECT = "This call takes a JSON object, with the header Content-Type: application/json."
MALFORMED = "The request's body is malformed."
AT_THE_COMMA = 15 if sys.version_info >= (3, 13) else 16
"""The column of a superfluous comma: older parsers name what follows it."""


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"{", "application/json", NO_JSON.format(line=1, column=2)),
        (b'{"serverId": 1,\n "ruleName": \'x\'}', "application/json", NO_JSON.format(line=2, column=14)),
        (b'{"serverId": 1,}', "application/merge-patch+json", NO_JSON.format(line=1, column=AT_THE_COMMA)),
        (b"", "application/json", NO_OBJECT),
        (b"[]", "application/json", NO_OBJECT),
        (b"null", "application/json", NO_OBJECT),
        (b'"{}"', "application/json", NO_OBJECT),
        # What curl says if nobody names the type.
        (b'{"serverId": 1}', "application/x-www-form-urlencoded", NO_OBJECT),
        (b'{"serverId": 1}', "text/plain", NO_OBJECT),
        (b'{"ruleName": "\xff"}', "application/json", MALFORMED),
        # The parser of Python 3.13 nests further, and so finds the end.
        (b'{"a":' * 5_000, "application/json", (MALFORMED, NO_JSON.format(line=1, column=25_001))),
        (
            b'{"serverId": 1, "removal": null}', "application/json",
            "Some fields are missing or have a wrong type. removal: Input should be an object",
        ),
    ],
)  # fmt: skip
async def test_a_body_that_is_no_json_object_is_told_so_in_plain_words(
    browser: Browser, body: bytes, kind: str, said: str | tuple[str, ...]
) -> None:
    headers = await signed_in() | {"content-type": kind}
    answer = await browser.client.post("/api/verification-rules", content=body, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["message"] in ([said] if isinstance(said, str) else said)


@pytest.mark.parametrize(
    "path",
    [
        "/api/verification-rules", "/api/discord/roles", "/api/discord/invite-url", "/api/servers/1/members?page=0",
        "/api/servers/1/members?page=abc", "/api/servers/1/members?query=%00", "/api/servers/1/events?since=yesterday",
        "/api/servers/1/events.csv?ruleId=0", "/api/servers/1/payout.csv?ruleId=abc", "/api/analytics/history?days=abc",
    ],
)  # fmt: skip
async def test_what_an_address_lacks_or_says_wrongly_is_400_because_it_is_no_json(browser: Browser, path: str):
    answer = await browser.client.get(path, headers=await signed_in())
    assert answer.status_code == 400, answer.text
    assert answer.json()["message"].startswith("Some fields are missing or have a wrong type.")


@pytest.mark.parametrize("body", [b"{bad", b"\xff\xfe", b"[" * 60_000, b'{"serverId": true}'])
async def test_nobody_is_told_about_their_json_without_a_session(browser: Browser, body: bytes):
    headers = {"content-type": "application/json"}
    for method, path in [("POST", "/api/verification-rules"), ("POST", "/api/verify-wallet"), ("POST", "/api/servers")]:
        answer = await browser.client.request(method, path, content=body, headers=headers)
        assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ruleName": ""}, "Rule name is required"),
        ({"ruleName": None, "blockchain": ""}, "Rule name is required"),
        ({"blockchain": "", "roleId": ""}, "Blockchain is required"),
        ({"roleId": "", "minTokens": 0}, "Role is required"),
        ({"minTokens": 0, "contractAddress": ""}, "Minimum tokens must be at least 1"),
        ({"minTokens": "1"}, "Minimum tokens must be a whole number"),
        ({"minTokens": 1e400}, "Minimum tokens must be a whole number"),
        ({"contractAddress": ""}, "Contract address is required"),
        ({"verificationType": "trait", "traitType": "Fur"}, "Trait type and value are required for trait verification"),
        ({"verificationType": "token_id"}, "At least one token ID is required for token ID verification"),
    ],
)
async def test_fields_are_checked_in_the_forms_order_before_anything_is_looked_up(
    browser: Browser, change: dict[str, object], message: str
):
    import json

    payload = {
        "ruleName": "Holders", "contractAddress": "0x" + "a" * 40, "blockchain": "base", "verificationType": "basic",
        "minTokens": 1, "roleId": "1", "roleColor": "#5865F2", "roleName": "Holder", "serverId": 10**12,
    }  # fmt: skip
    headers = await signed_in() | {"content-type": "application/json"}
    answer = await browser.client.post("/api/verification-rules", content=json.dumps(payload | change), headers=headers)
    assert (answer.status_code, answer.json()) == (400, {"message": message})


@pytest.mark.parametrize("server", ["0", "-1", "7", "99999999999999999999", "abc", "1.5", "１"])
async def test_an_id_that_names_nothing_is_not_found(browser: Browser, server: str):
    headers = await signed_in()
    for method, path in [
        ("GET", f"/api/verification-rules?serverId={server}"),
        ("GET", f"/api/verification-rules/{server}"),
        ("PATCH", f"/api/verification-rules/{server}"),
        ("DELETE", f"/api/verification-rules/{server}"),
        ("POST", f"/api/servers/{server}/recheck"),
        ("GET", f"/api/servers/{server}/events"),
        ("DELETE", f"/api/wallet-verifications/{server}"),
        ("GET", f"/api/discord/roles?serverId={server}"),
        ("DELETE", f"/api/me/sessions/{server}"),
    ]:
        body = {} if method in {"PATCH", "POST"} else None
        answer = await browser.client.request(method, path, headers=headers, json=body)
        assert answer.status_code == 404, f"{method} {path}: {answer.text}"
        assert answer.json()["message"]


async def test_a_large_body_is_refused_announced_or_not(browser: Browser):
    headers = await signed_in()
    answer = await browser.client.post("/api/servers", content=b"x" * 70_000, headers=headers)
    assert answer.status_code == 413

    async def pieces():
        for _ in range(70):
            yield b"x" * 1_000

    answer = await browser.client.post("/api/servers", content=pieces(), headers=headers)
    assert answer.status_code == 413
    assert answer.json()["message"]


async def test_speaking_for_somebody_else_is_forbidden(browser: Browser):
    headers = await signed_in()
    me = (await browser.client.get("/api/auth/user", headers=headers)).json()["id"]
    for other in (me + 1, str(me + 1), "carol", "0"):
        answer = await browser.client.get(f"/api/wallet-verifications?userId={other}", headers=headers)
        assert answer.status_code == 403
        payload = {"userId": other, "walletAddress": "0x" + "a" * 40, "verificationMethod": "opensea_bio"}
        answer = await browser.client.post("/api/verify-wallet", json=payload, headers=headers)
        assert answer.status_code == 403
    answer = await browser.client.get(f"/api/wallet-verifications?userId={me}", headers=headers)
    assert (answer.status_code, answer.json()) == (200, [])


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"walletAddress": ""},
        {"walletAddress": "0x12"},
        {"walletAddress": "nonsense"},
        {"walletAddress": "0x" + "a" * 40, "verificationMethod": "transaction"},
        {"walletAddress": "0x" + "a" * 40, "verificationMethod": "wish"},
    ],
)
async def test_what_a_person_can_correct_about_a_wallet_is_a_sentence_not_an_error(
    browser: Browser, payload: dict[str, str]
):
    answer = await browser.client.post("/api/verify-wallet", json=payload, headers=await signed_in())
    assert answer.status_code == 200
    assert answer.json()["success"] is False
    assert answer.json()["message"]


async def test_health_tells_whether_the_database_answers(
    browser: Browser, new_browser: Callable[[], Browser], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("HOLDFAST_SUPERVISED", raising=False)
    answer = await browser.client.get("/health")
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["version"]) == ("healthy", version())
    assert answer.json()["timestamp"]
    await models.use("postgresql://nobody@127.0.0.1:1/nothing")
    answer = await browser.client.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "starting", "version": version()})


def started(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the environment of a web process whose supervisor started `seconds` ago."""
    monkeypatch.setenv("HOLDFAST_SUPERVISED", "1")
    monkeypatch.setenv("HOLDFAST_STARTED", str(time.clock_gettime(time.CLOCK_BOOTTIME) - seconds))


async def bot_was_ready(seconds: float) -> None:
    """Store that the bot was ready `seconds` ago by the database's clock."""
    async with transaction() as db:
        await db.execute(
            text(
                "INSERT INTO schedule (name, next_at, started_at, done, total) "
                "VALUES ('bot.ready', now(), now() - make_interval(secs => :seconds), 0, 0) "
                "ON CONFLICT (name) DO UPDATE SET started_at = EXCLUDED.started_at"
            ),
            {"seconds": seconds},
        )


async def test_under_the_supervisor_health_waits_for_the_bot(browser: Browser, monkeypatch: pytest.MonkeyPatch):
    started(monkeypatch, 0)
    assert (await browser.client.get("/health")).status_code == 503
    await bot_was_ready(3600)
    assert (await browser.client.get("/health")).status_code == 503, "that was the start before this one"
    await bot_was_ready(0)
    assert (await browser.client.get("/health")).status_code == 200


async def test_health_is_ready_while_another_machine_runs_every_shard(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
):
    async def beats(number: int, down: str | None) -> None:
        part = ShardPart(f"{number}/2", 2, number, number)
        async with transaction() as db:
            await shards.beat(db, BotProcess(f"machine {number}", 1, "x"), part, 2, (), down)

    monkeypatch.setattr(shards, "LEASE_SECONDS", 600.0)
    started(monkeypatch, 1200)
    await bot_was_ready(3600)
    await beats(0, None)
    assert (await browser.client.get("/health")).status_code == 503, "the other shard runs nowhere"
    await beats(1, "The bot has just started.")
    assert (await browser.client.get("/health")).status_code == 503, "it is not connected yet"
    await beats(1, None)
    assert (await browser.client.get("/health")).status_code == 200
    started(monkeypatch, 0)
    assert (await browser.client.get("/health")).status_code == 503, "the leases may be from before the start"


async def test_a_database_that_is_away_is_said_to_be(browser: Browser, caplog: pytest.LogCaptureFixture):
    headers = await signed_in()
    await models.use("postgresql://nobody@127.0.0.1:1/nothing")
    answer = await browser.client.get("/api/servers", headers=headers)
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "database" in answer.json()["message"]
    (record,) = [one for one in caplog.records if one.name == "app.api.requests.problems"]
    assert record.getMessage().startswith("database did not answer path=/api/servers reason=")
    assert (record.exc_info, record.getMessage().count("\n")) == (None, 0)


@pytest.mark.parametrize("body", [b"a" * 100_000, b"{"], ids=["long", "malformed"])
async def test_a_database_that_is_away_before_a_call_begins_is_said_to_be(browser: Browser, body: bytes):
    """The caller is looked up before a long body is read, and after one that is not JSON."""
    headers = await signed_in() | {"content-type": "application/json"}
    await models.use("postgresql+psycopg://nobody@/nothing?host=/nowhere")
    answer = await browser.client.post("/api/verification-rules", content=body, headers=headers)
    assert (answer.status_code, answer.headers.get("retry-after")) == (503, "5"), answer.text


async def test_when_no_connection_is_free_the_database_is_said_to_be_away(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def crowded(*_: object) -> None:
        raise NoneFree("QueuePool limit of size 20 overflow 20 reached, connection timed out, timeout 30.00")

    monkeypatch.setattr(servers, "list_servers", crowded)
    answer = await browser.client.get("/api/servers", headers=await signed_in())
    assert (answer.status_code, answer.headers.get("retry-after")) == (503, "5"), answer.text
    (record,) = [one for one in caplog.records if one.name == "app.api.requests.problems"]
    assert (record.levelname, record.exc_info) == ("WARNING", None)


async def test_what_the_database_cannot_do_is_in_the_log_in_full(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def disk_full(*_: object) -> None:
        async with transaction() as db:
            await db.execute(text("DO $$ BEGIN RAISE SQLSTATE '53100'; END $$"))

    monkeypatch.setattr(servers, "list_servers", disk_full)
    answer = await browser.client.get("/api/servers", headers=await signed_in())
    assert answer.status_code == 503
    (record,) = [one for one in caplog.records if one.name == "app.api.requests.problems"]
    assert record.getMessage() == "database could not answer path=/api/servers"
    assert record.exc_info


async def test_a_fault_of_ours_shows_its_number_and_nothing_else(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def broken(*_: object) -> None:
        raise RuntimeError("SELECT secret FROM place WHERE token = 'abc'")

    monkeypatch.setattr(servers, "list_servers", broken)
    answer = await browser.client.get("/api/servers", headers=await signed_in())
    number = answer.headers["x-request-id"]
    assert answer.status_code == 500
    assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")
    assert "SELECT secret" in caplog.text
    assert answer.json() == {"message": f"Something went wrong on our side (request {number})."}


async def test_somebody_who_is_forgotten_during_a_call_is_nobody_and_nothing_is_logged_as_our_fault(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def forgotten(db: AsyncSession, actor: Actor) -> None:
        async with transaction() as other:
            await other.exec(delete(User))
        db.add(Handover(user_id=actor.user_id, code_hash=b"", expires_at=now()))
        await db.flush()

    monkeypatch.setattr(servers, "list_servers", forgotten)
    answer = await browser.client.get("/api/servers", headers=await signed_in())
    assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})
    assert "Traceback" not in caplog.text


async def test_the_calls_are_described(browser: Browser):
    described = (await browser.client.get("/api/openapi.json")).json()
    assert "/api/verification-rules/{rule_id}" in described["paths"]
    assert (await browser.client.get("/api/docs")).json() == described
    page = await browser.client.get("/api/docs", headers={"accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["vary"].lower().count("accept")) == (200, 1)
    assert "GET /api/servers" in page.text
    assert "http://" not in page.text.replace(PUBLIC_URL, "")


async def test_no_other_site_may_read_answers(browser: Browser):
    answer = await browser.client.get("/health", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    assert isinstance(answer, httpx.Response)
