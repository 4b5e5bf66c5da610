"""A caller who calls too often learns when to try again; the defaults leave room for whole households."""

import asyncio
from collections.abc import Callable, Coroutine

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.requests.body_limit import BodyLimit
from app.api.requests.limits_by_path import COSTLY, limits_of
from app.http.caller_address import Proxies, caller_address
from services.core.actors import Actor
from services.runtime.rate_limits import LOOKUPS, PREVIEWS, PROOFS, RECHECKS, WRITES, Limit
from settings import SettingsError, load, settings
from tests.app.api.browsers import PUBLIC_URL, Browser


@pytest.fixture
def limit(product: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that sets limits for a test."""

    def say(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name.upper(), str(value))
        settings.cache_clear()

    return say


def told_to_wait(answer: httpx.Response) -> bool:
    """Return whether the answer is a 429; raise AssertionError if one lacks a header or its message."""
    if answer.status_code != 429:
        return False
    seconds = int(answer.headers["retry-after"])
    assert seconds >= 1
    assert answer.json() == {"message": f"That was too often. Please try again in {seconds} seconds."}
    assert answer.headers["cache-control"] == "no-store"
    return True


async def test_thirty_sign_ins_and_a_hundred_and_twenty_writes_a_minute_are_nothing_special(browser: Browser) -> None:
    for _ in range(30):
        assert (await browser.client.get("/api/auth/discord")).status_code == 302
        assert (await browser.client.get("/api/auth/discord/callback?state=x&code=y")).status_code == 302
    for _ in range(120):
        assert (await browser.client.post("/api/auth/logout")).status_code == 200


@pytest.mark.parametrize("path", ["/api/auth/discord", "/api/auth/discord/connect", "/api/auth/discord/callback"])
async def test_sign_ins_from_one_address_are_counted(limit: Callable[..., None], browser: Browser, path: str) -> None:
    limit(limit_sign_ins=2)
    answers = [await browser.client.get(path) for _ in range(3)]
    assert [told_to_wait(answer) for answer in answers] == [False, False, True]
    assert (await browser.client.get("/api/openapi.json")).status_code == 200, "nothing else is shut"


async def test_what_writes_is_counted_for_an_address_before_anybody_is_known(
    limit: Callable[..., None], browser: Browser
) -> None:
    limit(limit_writes=2)
    answers = [await browser.client.post("/api/servers", json={}) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 401, 429]


async def test_what_one_person_does_too_often_others_still_may(
    discord: None, limit: Callable[..., None], new_browser: Callable[[], Browser]
) -> None:
    limit(limit_proofs=3, limit_lookups=1)
    one, other = new_browser(), new_browser()
    await one.sign_in("ada")
    await other.sign_in("dave")
    claim = {"walletAddress": "nothing", "verificationMethod": "opensea_bio"}
    answers = [await one.client.post("/api/verify-wallet", json=claim) for _ in range(4)]
    assert [told_to_wait(answer) for answer in answers] == [False, False, False, True]
    assert (await one.client.get("/api/wallet-challenge?address=x")).status_code == 429, "a claim is a claim"
    assert (await other.client.post("/api/verify-wallet", json=claim)).status_code == 200
    assert (await one.client.get("/api/wallet-verifications")).status_code == 200
    lookups = [await one.client.post("/api/collection/parse", json={"input": "x"}) for _ in range(2)]
    assert [told_to_wait(answer) for answer in lookups] == [False, True]


async def test_a_refused_shape_counts_no_second_time(
    discord: None, limit: Callable[..., None], browser: Browser
) -> None:
    limit(limit_writes=3)
    await browser.sign_in("ada")
    answers = [await browser.client.post("/api/servers", content=b"{") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [422, 422, 422]


@pytest.mark.parametrize(
    ("method", "path", "wanted"),
    [
        ("POST", "/api/verify-wallet", [WRITES, PROOFS]),
        ("GET", "/api/wallet-challenge", [PROOFS]),
        ("POST", "/api/collection/parse", [WRITES, LOOKUPS]),
        ("GET", "/api/collection/0x1/traits/Fur", [LOOKUPS]),
        ("GET", "/api/discord/roles", [LOOKUPS]),
        ("POST", "/api/verification-rules/preview", [WRITES, PREVIEWS]),
        ("POST", "/api/servers/5/import", [WRITES, PREVIEWS]),
        ("GET", "/api/servers/5/events/7/undo", [PREVIEWS]),
        ("POST", "/api/servers/5/recheck", [WRITES, RECHECKS]),
        ("POST", "/api/servers/5/members/7/recheck", [WRITES, RECHECKS]),
        ("POST", "/api/admin/sync-servers", [WRITES, RECHECKS]),
        ("PATCH", "/api/verification-rules/5", [WRITES]),
        ("DELETE", "/api/me", [WRITES]),
        ("GET", "/api/me/export", [PREVIEWS]),
        ("GET", "/api/me/forget", [PREVIEWS]),
        ("GET", "/api/servers", []),
    ],
)
def test_each_call_counts_as_what_it_costs(method: str, path: str, wanted: list[Limit]) -> None:
    assert limits_of(method, path) == wanted


def test_every_call_that_is_counted_exists() -> None:
    from app.api import api

    paths = {path.replace("{", "x").replace("}", "x") for path in api.openapi()["paths"]}
    for pattern, limit in COSTLY:
        assert any(pattern.fullmatch(path) for path in paths), f"{limit} stands for no call: {pattern.pattern}"


async def seen_from(peer: str, forwarded: list[str]) -> str:
    """Return the address under which a caller from `peer` with these headers is counted."""
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(caller_address(scope))

    async def nothing(*_: object) -> dict[str, object]:
        return {}

    headers = [(b"x-forwarded-for", line.encode()) for line in forwarded]
    await Proxies(app)({"type": "http", "client": (peer, 5), "headers": headers}, nothing, nothing)  # pyright: ignore[reportArgumentType]
    return seen[0]


async def test_a_forwarded_address_counts_only_from_a_trusted_proxy(limit: Callable[..., None]) -> None:
    assert await seen_from("192.0.2.1", ["198.51.100.7"]) == "192.0.2.1"
    limit(trusted_proxies="192.0.2.1 10.0.0.0/8")
    assert await seen_from("192.0.2.1", ["198.51.100.7"]) == "198.51.100.7"
    assert await seen_from("192.0.2.2", ["198.51.100.7"]) == "192.0.2.2"
    assert await seen_from("10.1.2.3", ["203.0.113.9, 198.51.100.7", "10.9.9.9"]) == "198.51.100.7"
    assert await seen_from("192.0.2.1", ["203.0.113.9, nonsense"]) == "192.0.2.1", "nobody is made up"
    assert await seen_from("192.0.2.1", ["::ffff:198.51.100.7"]) == "198.51.100.7"
    assert await seen_from("192.0.2.1", ["198.51.100.7:50124"]) == "198.51.100.7", "as Azure's gateways write it"
    assert await seen_from("192.0.2.1", ["[2001:db8:1:2::4]:50124"]) == await seen_from("2001:db8:1:2::9", [])
    assert await seen_from("192.0.2.1", ["198.51.100.7:nonsense"]) == "192.0.2.1"
    assert await seen_from("192.0.2.1", ["2001:db8:1:2:3::4"]) == await seen_from("192.0.2.1", ["2001:db8:1:2::9"])
    assert await seen_from("192.0.2.1", ["2001:db8:1:2::4"]) != await seen_from("192.0.2.1", ["2001:db8:1:3::4"])


def test_a_proxy_that_is_no_address_is_refused(product: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUSTED_PROXIES", "proxy.example")
    with pytest.raises(SettingsError, match="TRUSTED_PROXIES takes addresses"):
        load()


async def test_a_forged_forwarded_address_gains_nothing(limit: Callable[..., None], browser: Browser) -> None:
    limit(limit_sign_ins=2)
    answers = [
        await browser.client.get("/api/auth/discord", headers={"X-Forwarded-For": f"198.51.100.{number}"})
        for number in range(3)
    ]
    assert [answer.status_code for answer in answers] == [302, 302, 429]


async def test_a_body_that_never_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.api.requests.body_limit.SLOWEST_BODY", 0.01)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        pytest.fail("it was passed on")

    assert await status_of(BodyLimit(app)) == 408


async def test_a_body_that_cannot_be_read_is_a_problem_of_its_sender() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        pytest.fail("it was passed on")

    assert await status_of(BodyLimit(app), {"type": "http.disconnect"}) == 400


async def status_of(app: ASGIApp, message: dict[str, object] | None = None) -> int:
    """Return the status of the answer to a POST whose body is this message, or never comes."""
    from asyncio import Event

    told: list[int] = []

    async def receive() -> dict[str, object]:
        if message is None:
            await Event().wait()
        return message or {}

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        if message["type"] == "http.response.start":
            told.append(message["status"])

    scope = {"type": "http", "method": "POST", "path": "/api/servers", "headers": [(b"host", PUBLIC_URL.encode())]}
    await app(scope, receive, send)  # pyright: ignore[reportArgumentType]
    return told[0]


async def test_one_persons_slow_bodies_leave_places_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def known(request: Request) -> Actor:
        return Actor(int(request.headers["x-who"]), request.headers["x-who"], "somebody")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await PlainTextResponse("")(scope, receive, send)

    monkeypatch.setattr("app.api.requests.body_limit.known_caller", known)
    monkeypatch.setattr("app.api.requests.body_limit.SLOWEST_BODY", 3_600)
    limit, waiting, whole = BodyLimit(app), list[int](), asyncio.Event()

    async def call(who: int, address: str, *, slow: bool = False) -> int:
        told: list[int] = []

        async def receive() -> Message:
            if slow and not whole.is_set():
                waiting.append(who)
                await whole.wait()
            return {"type": "http.request", "body": b"x"}

        async def send(message: Message) -> None:
            told.append(message.get("status", 0))

        await limit(
            {
                "type": "http", "method": "POST", "path": "/api/servers/1/import", "client": (address, 5),
                "headers": [(b"content-length", b"100000"), (b"x-who", str(who).encode())],
            },
            receive, send,
        )  # fmt: skip
        return told[0]

    async def begun(*calls: Coroutine[None, None, int]) -> list[asyncio.Task[int]]:
        """Start the calls, and return them once each is answered or waits for its body."""
        before, tasks = len(waiting), [asyncio.create_task(one) for one in calls]
        while sum(one.done() for one in tasks) + len(waiting) - before < len(tasks):
            await asyncio.sleep(0)
        return tasks

    mine = await begun(*(call(1, f"192.0.2.{at}", slow=True) for at in range(8)))
    assert await call(2, "198.51.100.1") == 200
    theirs = await begun(*(call(who, "198.51.100.1", slow=True) for who in range(3, 9)))
    assert await call(2, "198.51.100.2") == 200, "nor does one address keep all places"
    assert await call(2, "198.51.100.1") == 429
    whole.set()
    answers = [await asyncio.gather(*tasks) for tasks in (mine, theirs)]
    assert [statuses.count(200) for statuses in answers] == [2, 4]
    assert [await call(1, "192.0.2.1"), await call(2, "198.51.100.1")] == [200, 200], "the places are free again"
