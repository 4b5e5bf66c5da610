"""People, and the grants that Discord gave us for them, against the sandbox's Discord."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy.pool import QueuePool
from sqlmodel import select, update

import models
from gateways import close_gateways, gateways
from gateways.discord.oauth import GrantRefused, TokenSet
from gateways.transport.errors import ProviderRefused, Unauthorized
from models import Session, User, now, transaction
from models.db import database
from models.db.session import AsyncSession
from services.accounts import encryption, sessions, sign_in, users
from services.accounts.encryption import UnreadableToken, seal, unseal
from services.core.actors import Actor
from services.core.errors import NotConnected, ProviderUnavailable
from services.guilds import permissions
from settings import settings
from tests.app.api.browsers import agreed


@pytest.fixture
async def ada(
    database_url: str, sandbox_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Actor]:
    """ada, signed in."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("SANDBOX_PORT", str(urlsplit(sandbox_url).port))
    settings.cache_clear()
    await close_gateways()  # a test without a sandbox may have left gateways that lead nowhere
    await models.use(database_url)
    async with transaction() as db:
        address = await sign_in.begin(db, gateways(), purpose=sign_in.SIGN_IN, return_path=None, login_cookie="cookie")
    back = parse_qs(urlsplit(await agreed(address, "ada")).query)
    async with transaction() as db:
        journey = await sign_in.take(db, state=back["state"][0], login_cookie="cookie")
    assert journey is not None
    proof = await sign_in.ask(gateways(), journey, back["code"][0])
    async with transaction() as db:
        signed_in = await sign_in.finish(db, journey, proof, old_session_id=None, user_agent="")
    async with transaction() as db:
        actor = await sessions.actor_of(db, signed_in.session_id)
    assert actor is not None
    yield actor
    await close_gateways()
    await models.use(None)
    settings.cache_clear()


async def stored() -> User:
    async with transaction() as db:
        return (await db.exec(select(User))).one()


async def put(**values: object) -> None:
    async with transaction() as db:
        await db.exec(update(User).values(**values))


async def token(actor: Actor) -> str:
    async with transaction() as db:
        return await users.fresh_access_token(db, gateways(), actor.user_id)


async def test_a_token_is_used_while_it_lasts_and_exchanged_before_its_end(ada: Actor):
    first = await token(ada)
    assert await token(ada) == first
    await put(token_expires_at=now() + timedelta(minutes=1))
    second = await token(ada)
    assert second != first
    assert (await gateways().oauth.me(second)).username == "ada"
    assert (await stored()).token_expires_at > now() + timedelta(days=1)  # pyright: ignore[reportOptionalOperand]


async def test_several_at_once_exchange_a_token_once(ada: Actor):
    await put(token_expires_at=now())
    assert len({*await asyncio.gather(*(token(ada) for _ in range(5)))}) == 1


async def test_processes_at_once_exchange_a_token_once(ada: Actor, monkeypatch: pytest.MonkeyPatch):
    class LockOfEachProcess(dict[int, asyncio.Lock]):
        def setdefault(self, key: int, default: asyncio.Lock) -> asyncio.Lock:  # pyright: ignore[reportIncompatibleMethodOverride]
            return default

    monkeypatch.setattr(users, "_refreshing", LockOfEachProcess())
    await put(token_expires_at=now())
    assert len({*await asyncio.gather(*(token(ada) for _ in range(5)))}) == 1


async def test_only_the_call_that_exchanges_a_token_keeps_a_connection(ada: Actor, monkeypatch: pytest.MonkeyPatch):
    await put(token_expires_at=now())
    oauth, exchange, read_row, read = gateways().oauth, gateways().oauth.refresh, users._row, list[int]()

    async def counted(db: AsyncSession, user_id: int, *, lock: bool = False) -> User | None:
        row = await read_row(db, user_id, lock=lock)
        if not lock:
            read.append(user_id)
        return row

    async def once_the_others_wait(old: TokenSet) -> TokenSet:
        pool = database.engine().pool
        assert isinstance(pool, QueuePool)
        async with asyncio.timeout(20):
            while len(read) < 5 or pool.checkedout() > 1:
                await asyncio.sleep(0.01)
        return await exchange(old)

    monkeypatch.setattr(users, "_row", counted)
    monkeypatch.setattr(oauth, "refresh", once_the_others_wait)
    assert len({*await asyncio.gather(*(token(ada) for _ in range(5)))}) == 1


async def test_an_exchange_is_kept_even_if_what_needed_it_is_undone(ada: Actor):
    await put(token_expires_at=now())

    async def undone_afterwards() -> None:
        async with transaction() as db:
            await users.fresh_access_token(db, gateways(), ada.user_id)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await undone_afterwards()
    user = await stored()
    assert user.access_token is not None
    assert (await gateways().oauth.me(unseal(user.access_token))).username == "ada"
    await put(token_expires_at=now())
    assert await token(ada)


async def test_an_exchange_is_kept_even_if_what_needed_it_is_cancelled(ada: Actor, monkeypatch: pytest.MonkeyPatch):
    await put(token_expires_at=now() + timedelta(minutes=1))
    exchange, answered, on = gateways().oauth.refresh, asyncio.Event(), asyncio.Event()

    async def slowly(tokens: TokenSet) -> TokenSet:
        found = await exchange(tokens)
        answered.set()
        await on.wait()
        return found

    monkeypatch.setattr(gateways().oauth, "refresh", slowly)
    asking = asyncio.create_task(token(ada))
    await answered.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    on.set()
    assert (await gateways().oauth.me(await token(ada))).username == "ada"


async def test_a_grant_that_discord_ended_is_noticed_at_the_exchange(ada: Actor):
    await gateways().oauth.revoke(await token(ada))
    await put(token_expires_at=now())
    with pytest.raises(NotConnected):
        await token(ada)
    assert (await stored()).connected is False


@pytest.mark.parametrize(
    ("session_ends", "token_ends", "stays"),
    [(-1, -1, False), (1, -1, True), (-1, 1, True)],
    ids=["both expired", "the session lives", "the grant was refreshed on the last day"],
)
async def test_an_expired_grant_is_deleted_after_the_last_session(
    ada: Actor, session_ends: int, token_ends: int, *, stays: bool
) -> None:
    await put(token_expires_at=now() + timedelta(hours=token_ends))
    async with transaction() as db:
        await db.exec(update(Session).values(expires_at=now() + timedelta(hours=session_ends)))
    async with transaction() as db:
        assert await users.drop_unused_grants(db, 10) == (0 if stays else 1)
    user = await stored()
    held = (user.access_token, user.refresh_token, user.token_expires_at)
    assert (user.connected, any(one is not None for one in held)) == (stays, stays)


async def test_a_grant_that_discord_ended_is_noticed_by_looking_now_and_then(ada: Actor):
    await gateways().oauth.revoke(await token(ada))
    await put(updated_at=now() - timedelta(hours=1))
    async with transaction() as db:
        view = await users.view(db, gateways(), ada)
    assert view.is_discord_connected is False
    assert view.username == "ada"


async def test_a_grant_that_discord_refuses_for_the_servers_is_asked_about_at_the_next_look(ada: Actor):
    await gateways().oauth.revoke(await token(ada))
    with pytest.raises(NotConnected):
        async with transaction() as db:
            await permissions.own_guilds(db, gateways(), ada, max_age=0)
    async with transaction() as db:
        view = await users.view(db, gateways(), ada)
    assert view.is_discord_connected is False


async def test_a_refusal_that_discord_does_not_repeat_disconnects_nobody(ada: Actor, monkeypatch: pytest.MonkeyPatch):
    async def refused(*_: object, **__: object) -> None:
        raise Unauthorized("discord", "HTTP 401", status=401)

    monkeypatch.setattr(gateways().oauth, "my_guilds", refused)
    with pytest.raises(NotConnected):
        async with transaction() as db:
            await permissions.own_guilds(db, gateways(), ada)
    async with transaction() as db:
        view = await users.view(db, gateways(), ada)
    assert view.is_discord_connected is True


async def test_a_refusal_of_a_grant_that_was_replaced_meanwhile_disconnects_nobody(
    ada: Actor, monkeypatch: pytest.MonkeyPatch
):
    person = await gateways().oauth.me(await token(ada))
    fresh = TokenSet("fresh", "fresh", now() + timedelta(days=7), "")

    async def signed_in_again(*_: object) -> None:
        async with transaction() as db:
            await users.keep(db, person, fresh)
        raise Unauthorized("discord", "HTTP 401", status=401)

    monkeypatch.setattr(gateways().oauth, "me", signed_in_again)
    await put(updated_at=now() - timedelta(hours=1))
    async with transaction() as db:
        view = await users.view(db, gateways(), ada)
    assert view.is_discord_connected is True
    assert await token(ada) == "fresh"


async def test_an_outage_of_discord_disconnects_nobody(ada: Actor, monkeypatch: pytest.MonkeyPatch):
    await put(updated_at=now() - timedelta(hours=1))
    await close_gateways()
    monkeypatch.setenv("SANDBOX_PORT", "1")
    settings.cache_clear()
    async with transaction() as db:
        view = await users.view(db, gateways(), ada)
    assert view.is_discord_connected is True


@pytest.mark.parametrize("status", [400, 401, 403])
async def test_a_refusal_of_the_exchange_that_is_not_about_the_grant_disconnects_nobody(
    ada: Actor, status: int, monkeypatch: pytest.MonkeyPatch
):
    async def refused(*_: object) -> None:
        raise ProviderRefused("Discord", f"HTTP {status}", status=status)

    monkeypatch.setattr(gateways().oauth, "refresh", refused)
    await put(token_expires_at=now())
    with pytest.raises(ProviderUnavailable):
        await token(ada)
    assert (await stored()).connected is True


async def test_letting_go_forgets_the_tokens(ada: Actor):
    kept = await token(ada)
    await put(refresh_token=None)
    async with transaction() as db:
        assert await users.drop_discord_grant(db, ada.user_id) == kept
    user = await stored()
    assert (user.access_token, user.refresh_token, user.connected) == (None, None, False)
    with pytest.raises(NotConnected):
        await token(ada)
    async with transaction() as db:
        assert await users.drop_discord_grant(db, ada.user_id) is None


async def test_a_grant_whose_access_token_has_expired_is_given_back_by_its_refresh_token(ada: Actor):
    refreshes = unseal((await stored()).refresh_token or b"")
    await put(token_expires_at=now() - timedelta(days=30))
    async with transaction() as db:
        assert await users.drop_discord_grant(db, ada.user_id) == refreshes
    await gateways().oauth.revoke(refreshes)
    with pytest.raises(GrantRefused):
        await gateways().oauth.refresh(TokenSet("", refreshes, now(), ""))


async def test_what_is_sealed_opens_with_the_previous_key_and_with_no_other(monkeypatch: pytest.MonkeyPatch):

    def keys(present: str, previous: str | None) -> None:
        monkeypatch.setenv("SECRET_KEY", present)
        monkeypatch.setenv("SECRET_KEY_PREVIOUS", previous) if previous else monkeypatch.delenv(
            "SECRET_KEY_PREVIOUS", raising=False
        )
        settings.cache_clear()

    keys("first", None)
    sealed = seal("token")
    assert b"token" not in sealed
    keys("second", "first")
    assert unseal(sealed) == "token"
    keys("second", None)
    with pytest.raises(UnreadableToken):
        unseal(sealed)
    settings.cache_clear()


async def test_the_sandbox_keeps_a_key_that_only_its_owner_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):

    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.delenv("SECRET_KEY", raising=False)
    settings.cache_clear()
    sealed = seal("token")
    # As in another process.
    encryption._sandbox_key.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert unseal(sealed) == "token"
    key = tmp_path / "sandbox" / "secret.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in key.parent.iterdir()] == ["secret.key"]
    settings.cache_clear()
