"""The way to Discord and back: where it may end, and that each journey counts once."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from sqlalchemy import text
from sqlmodel import select, update

import models
from gateways import close_gateways, gateways
from models import Session, SignIn, now, transaction
from services.accounts import return_paths, sessions, sign_in
from services.accounts.users import ensure
from services.core.errors import SignInFailed
from settings import settings


@pytest.fixture
async def product(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[None]:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    settings.cache_clear()
    await models.use(database_url)
    yield
    await close_gateways()
    await models.use(None)
    settings.cache_clear()


async def begun(cookie: str = "cookie", return_path: str | None = None) -> str:
    """Begin a journey and return its state."""
    async with transaction() as db:
        address = await sign_in.begin(
            db, gateways(), purpose=sign_in.SIGN_IN, return_path=return_path, login_cookie=cookie
        )
    return parse_qs(urlsplit(address).query)["state"][0]


async def taken(state: str, cookie: str | None = "cookie") -> sign_in.Journey | None:
    async with transaction() as db:
        return await sign_in.take(db, state=state, login_cookie=cookie)


async def test_a_journey_comes_back_once(product: None):
    state = await begun(return_path="/wallet-verification")
    journey = await taken(state)
    assert journey is not None
    assert journey.return_path == "/wallet-verification"
    assert await taken(state) is None


@pytest.mark.parametrize("cookie", ["another", "", None])
async def test_a_journey_shown_by_another_browser_is_over(product: None, cookie: str | None):
    state = await begun()
    assert await taken(state, cookie) is None
    assert await taken(state) is None


async def test_a_journey_is_over_after_ten_minutes(product: None):
    state = await begun()
    async with transaction() as db:
        await db.exec(update(SignIn).values(expires_at=now() - timedelta(seconds=1)))
    assert await taken(state) is None


async def test_a_sign_in_waits_for_no_other_persons_expired_rows(product: None):
    await begun()
    async with transaction() as db:
        ada, bob = [await ensure(db, name, name) for name in ("ada", "bob")]
        await sessions.open_session(db, ada, "A browser")
        await db.exec(update(SignIn).values(expires_at=now() - timedelta(seconds=1)))
        await db.exec(update(Session).values(expires_at=now() - timedelta(seconds=1)))
    async with transaction() as db:
        await db.execute(text("SELECT 1 FROM sign_in, session FOR UPDATE"))
        async with transaction() as other:
            await other.execute(text("SET LOCAL lock_timeout = '100ms'"))
            await sign_in.begin(
                other, gateways(), purpose=sign_in.SIGN_IN, return_path=None, login_cookie=sign_in.new_login_cookie()
            )
            await sessions.open_session(other, bob, "A browser")


async def test_nothing_stored_of_a_journey_lets_anybody_finish_it(product: None):
    state = await begun("a-login-cookie")
    async with transaction() as db:
        row = (await db.exec(select(SignIn))).one()
    assert state not in repr(row)
    assert "a-login-cookie" not in repr(row)


@pytest.mark.parametrize(
    ("path", "checked"),
    [
        ("/", "/"),
        ("/dashboard", "/dashboard"),
        ("/server-config?serverId=7&serverName=A%20B", "/server-config?serverId=7&serverName=A%20B"),
        ("/invite?session=forged&a=", "/invite?a="),
        ("/help-center#faq", "/help-center"),
        ("/dashboard/", "/dashboard/"),
        ("/dashboard/server/käse", "/dashboard/server/k%C3%A4se"),
        ("/käse", None),
        ("/ping", None),
        ("/metrics", None),
        ("/_event", None),
        ("/assets/x", None),
        ("/social.png", None),
        ("/favicon.ico", None),
        ("/discord", None),
        ("/console", None),
        ("/API/auth/logout", None),
        (None, None),
        ("", None),
        ("dashboard", None),
        ("https://evil.example/", None),
        ("//evil.example/", None),
        ("///evil.example/", None),
        ("/\\evil.example", None),
        ("/%5cevil.example", None),
        ("/%2f/evil.example", None),
        ("/%2fevil.example", None),
        ("/.//evil.example", None),
        ("/a/../..//evil.example", None),
        ("/a/%2e%2e/b", None),
        ("/\tevil.example", None),
        ("/%09evil.example", None),
        ("/%0d%0aSet-Cookie:x", None),
        ("/api/auth/logout", None),
        ("/%61pi/auth/logout", None),
        ("/health", None),
        ("javascript:alert(1)", None),
        ("/" + "x" * 5000, None),
    ],
)
def test_only_a_plain_screen_of_ours_is_returned_to(path: str | None, checked: str | None):
    assert return_paths.checked_return_path(path) == checked


def test_the_redirect_address_comes_from_the_settings(monkeypatch: pytest.MonkeyPatch):
    for public in ("http://localhost:3000", "http://localhost:4321"):
        monkeypatch.setenv("PUBLIC_URL", public)
        settings.cache_clear()
        assert sign_in.redirect_uri() == f"{public}/api/auth/discord/callback"
    monkeypatch.undo()
    settings.cache_clear()


async def test_a_rejected_client_secret_is_said_with_what_to_do(
    product: None, sandbox_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The person can do nothing about it, and sees only that the sign-in failed."""
    monkeypatch.setenv("SANDBOX_PORT", str(urlsplit(sandbox_url).port))
    settings.cache_clear()
    await close_gateways()
    fault = {"target": "discord", "kind": "answer", "path": "/oauth2/token", "status": 401}
    journey = sign_in.Journey(sign_in.SIGN_IN, "v" * 43, "/dashboard", None)
    async with httpx.AsyncClient(base_url=sandbox_url) as sandbox:
        await sandbox.post("/control/faults", json=fault | {"body": {"error": "invalid_client"}})
        try:
            with pytest.raises(SignInFailed):
                await sign_in.ask(gateways(), journey, "a-code")
        finally:
            await sandbox.delete("/control/faults")
        with pytest.raises(SignInFailed):
            await sign_in.ask(gateways(), journey, "a-code")
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "CRITICAL"]
    assert line.startswith("Discord rejects DISCORD_CLIENT_SECRET.")
