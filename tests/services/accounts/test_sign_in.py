"""The way to Discord and back: where it may end, and that each journey counts once."""

import asyncio
import secrets
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
from gateways.discord.oauth import TokenSet
from gateways.discord.types import OAuthUser
from models import Session, SignIn, User, now, transaction
from models.db.session import AsyncSession
from services.accounts import return_paths, sessions, sign_in, users
from services.accounts.encryption import unseal
from services.accounts.users import ensure
from services.core.errors import SignInFailed
from services.runtime.task_cancellation import stop
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


def returned(name: str) -> sign_in.SignInProof:
    """Return what Discord says about somebody who has just agreed."""
    tokens = TokenSet(
        f"token of {name} {secrets.token_hex(4)}", "refresh", now() + timedelta(days=7), "identify guilds"
    )
    return sign_in.SignInProof(OAuthUser(f"id of {name}", name, None, None, "0"), tokens)


async def arrives(db: AsyncSession, proof: sign_in.SignInProof, old: str | None = None) -> sign_in.SignedIn:
    journey = sign_in.Journey(sign_in.SIGN_IN, "", "/dashboard", None)
    return await sign_in.finish(db, journey, proof, old_session_id=old, user_agent="")


async def signed_in(name: str) -> sign_in.SignedIn:
    async with transaction() as db:
        return await arrives(db, returned(name))


async def signed_out(session_id: str) -> str | None:
    async with transaction() as db:
        return await sign_in.sign_out(db, session_id)


async def somebody_waits(db: AsyncSession, many: int = 1) -> None:
    async with asyncio.timeout(60):
        while len((await db.execute(text("SELECT 1 FROM pg_locks WHERE NOT granted"))).all()) < many:
            await asyncio.sleep(0.05)


async def test_a_sign_in_keeps_its_grant_while_the_last_other_session_ends(
    product: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again, drop = await signed_in("ada"), returned("ada"), users.drop_discord_grant

    async def arrive() -> None:
        async with transaction() as db:
            await arrives(db, again)

    async def meanwhile(db: AsyncSession, user_id: int) -> str | None:
        arriving.append(asyncio.create_task(arrive()))
        waiting = asyncio.create_task(somebody_waits(db))
        await asyncio.wait([*arriving, waiting], return_when=asyncio.FIRST_COMPLETED)
        await stop(waiting)
        return await drop(db, user_id)

    arriving = list[asyncio.Task[None]]()
    monkeypatch.setattr(users, "drop_discord_grant", meanwhile)
    assert await signed_out(first.session_id) is not None
    await asyncio.gather(*arriving)
    async with transaction() as db:
        user = (await db.exec(select(User))).one()
        assert (user.connected, user.access_token is None) == (True, False)
        assert unseal(user.access_token or b"") == again.tokens.access_token


async def test_a_sign_out_and_a_deletion_of_data_wait_for_each_other_in_turn(product: None) -> None:
    ada = await signed_in("ada")
    async with transaction() as db:
        await users.drop_discord_grant(db, ada.user_id)  # as a deletion does it, before it deletes the person
        leaving = asyncio.create_task(signed_out(ada.session_id))
        await somebody_waits(db)
        await db.execute(text('DELETE FROM "user"'))
    assert await leaving is None


async def test_two_people_who_exchange_browsers_wait_for_each_other_in_turn(product: None) -> None:
    ada, bob = await signed_in("ada"), await signed_in("bob")

    async def sits_down(name: str, old: sign_in.SignedIn) -> int:
        async with transaction() as db:
            return (await arrives(db, returned(name), old.session_id)).user_id

    async with transaction() as db:
        await db.execute(text('SELECT FROM "user" WHERE id = :ada FOR UPDATE'), {"ada": ada.user_id})
        first = asyncio.create_task(sits_down("ada", bob))
        await somebody_waits(db, 1)
        second = asyncio.create_task(sits_down("bob", ada))
        await somebody_waits(db, 2)
    assert await asyncio.gather(first, second) == [ada.user_id, bob.user_id]
