"""People who signed in: how they see themselves, and the grant that Discord gave us for them."""

import asyncio
from datetime import timedelta
from typing import Any, cast
from weakref import WeakValueDictionary

from sqlalchemy import CursorResult
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select, update

from gateways import Gateways
from gateways.discord.oauth import GrantRefused, TokenSet
from gateways.discord.types import OAuthUser
from gateways.transport.errors import ProviderError, Unauthorized
from models import User, corrected, now, transaction
from models.db.database import release
from models.db.session import AsyncSession
from services.accounts.encryption import UnreadableToken, seal, unseal
from services.core.actors import Actor
from services.core.errors import NotConnected, NotSignedIn, unavailable
from services.core.json_view import json_view
from services.wallets.wallets import WalletView, list_wallets
from settings import settings

ASKED_EVERY = timedelta(minutes=5)
"""How long Discord's last answer about a person is used."""
_PATIENCE = 2.0
"""Seconds that reading one's own account may wait for Discord."""
_EARLY = timedelta(minutes=10)
"""How long before its expiry a token is refreshed."""
_refreshing: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
"""By user, the lock of the one call in this process that may wait for the user's row with a connection."""
_exchanges: set[asyncio.Task[str]] = set()
"""Running exchanges of refresh tokens; they continue when the waiting call is cancelled."""


@json_view
class UserView:
    """The signed-in person as they see themselves; `discordAvatar` is Discord's hash of the picture."""

    id: int
    username: str
    email: str | None
    discord_id: str
    discord_username: str
    discord_avatar: str | None
    is_discord_connected: bool
    is_verified: bool
    verified_wallets: tuple[WalletView, ...]


async def view(db: AsyncSession, outside: Gateways, actor: Actor) -> UserView:
    """Return the actor with their wallets. Every few minutes it asks Discord whether the grant is still valid.

    Raises NotSignedIn when the person no longer exists.
    """
    await _ask_discord(outside, actor.user_id)
    row = await _row(db, actor.user_id)
    if row is None:
        raise NotSignedIn
    wallets = tuple(await list_wallets(db, actor))
    return UserView(
        id=actor.user_id,
        username=row.username,
        email=row.email,
        discord_id=row.discord_id,
        discord_username=row.username,
        discord_avatar=row.avatar,
        is_discord_connected=row.connected,
        is_verified=bool(wallets),
        verified_wallets=wallets,
    )


def avatar_url(discord_id: str, avatar: str | None) -> str | None:
    """Return the URL of a person's picture on Discord's CDN, or None without the picture's hash `avatar`.

    See docs/facts.md#discord-pictures.
    """
    return f"{settings().discord_cdn_url}/avatars/{discord_id}/{avatar}.png?size=128" if avatar else None


async def keep(db: AsyncSession, person: OAuthUser, tokens: TokenSet) -> int:
    """Store a person who signed in and their grant; return the user's id."""
    values = _told(person) | {
        "access_token": seal(tokens.access_token),
        "refresh_token": seal(tokens.refresh_token) if tokens.refresh_token else None,
        "token_expires_at": corrected(tokens.expires_at),
        "connected": True,
        "updated_at": now(),
    }
    known = insert(User).values(discord_id=person.id, created_at=now(), **values)
    kept = known.on_conflict_do_update(index_elements=["discord_id"], set_=values).returning(col(User.id))
    return (await db.execute(kept)).scalar_one()


async def ensure(db: AsyncSession, discord_id: str, username: str) -> int:
    """Return the user's id, creating a user for a person known only in Discord so far."""
    met = insert(User).values(discord_id=discord_id, username=username, connected=False, created_at=now(),
                              updated_at=now())  # fmt: skip
    kept = met.on_conflict_do_update(index_elements=["discord_id"], set_={"discord_id": discord_id})
    return (await db.execute(kept.returning(col(User.id)))).scalar_one()


async def choose_language(db: AsyncSession, user_id: int, language: str) -> None:
    """Store the language that a person chose for the screens."""
    await db.execute(
        update(User)
        .where(col(User.id) == user_id, col(User.language).is_distinct_from(language))
        .values(language=language)
    )


async def language_of(db: AsyncSession, user_id: int) -> str | None:
    """Return the language that a person chose for the screens, or None."""
    return (await db.exec(select(User.language).where(User.id == user_id))).first()


def whole_username(username: str, discriminator: str) -> str:
    """Return a username as we store it: one from before 2023 keeps its number after a #."""
    return username if discriminator in {"", "0"} else f"{username}#{discriminator}"


def _told(person: OAuthUser) -> dict[str, object]:
    """Return the columns that Discord's answer sets."""
    username = whole_username(person.username, person.discriminator)
    return {"username": username, "global_name": person.global_name, "avatar": person.avatar}


async def fresh_access_token(db: AsyncSession, outside: Gateways, user_id: int) -> str:
    """Return a valid access token for this person, refreshed shortly before it expires.

    A refresh commits what `db` has done so far. Raises NotConnected when Discord (or our key) no longer accepts the
    grant, ProviderUnavailable when Discord cannot be asked.
    """
    user = await _row(db, user_id)
    if user is None or not user.connected:
        raise NotConnected
    token = _usable(user)
    if token is not None:
        return token
    # Discord may take seconds to answer. Of all this person's calls, only the one that asks keeps a connection.
    await release(db)
    lock = _refreshing.setdefault(user_id, asyncio.Lock())
    async with lock:
        exchange = asyncio.create_task(_refreshed(outside, user_id))
        _exchanges.add(exchange)
        exchange.add_done_callback(_exchanges.discard)
        return await asyncio.shield(exchange)


async def doubt_discord_grant(user_id: int) -> None:
    """Have the next `view` ask Discord whether the grant is still valid: another request with it was refused."""
    async with transaction() as db:
        asked = now() - ASKED_EVERY
        latest = update(User).where(col(User.id) == user_id, col(User.updated_at) > asked)
        await db.exec(latest.values(updated_at=asked))


async def drop_discord_grant(db: AsyncSession, user_id: int) -> str | None:
    """Delete a person's grant; return the token to revoke at Discord, or None.

    It is the refresh token if there is one: the access token may have expired, and nothing says that an expired token
    ends anything. Either ends the whole grant (docs/facts.md#discord-oauth2).
    """
    user = await _row(db, user_id, lock=True)
    if user is None or user.access_token is None:
        return None
    sealed = user.refresh_token or user.access_token
    user.access_token = user.refresh_token = None
    user.token_expires_at, user.connected, user.updated_at = None, False, now()
    db.add(user)
    try:
        return unseal(sealed)
    except UnreadableToken:
        return None


# A sign-in and a refresh change the expiry, so that a grant which became fresh while its row was awaited is kept.
_DROP_UNUSED = """
    UPDATE "user" SET access_token = NULL, refresh_token = NULL, token_expires_at = NULL, connected = FALSE,
        updated_at = CAST(:now AS timestamptz)
    WHERE id = ANY(ARRAY(
        SELECT u.id FROM "user" u WHERE u.access_token IS NOT NULL AND u.token_expires_at < CAST(:now AS timestamptz)
        AND NOT EXISTS (SELECT 1 FROM session s WHERE s.user_id = u.id AND s.expires_at > CAST(:now AS timestamptz))
        LIMIT :most FOR NO KEY UPDATE OF u SKIP LOCKED))
"""


async def drop_unused_grants(db: AsyncSession, most: int) -> int:
    """Delete the expired grants of people whose last session has expired too, at most `most`; return how many.

    Discord is not asked to revoke them: what may still be valid there is a refresh token that nobody has any more.
    """
    gone = await db.execute(_DROP_UNUSED, {"now": now(), "most": most})
    return cast("CursorResult[Any]", gone).rowcount


async def _row(db: AsyncSession, user_id: int, *, lock: bool = False) -> User | None:
    """Return the user's present row, even if this transaction has read it before."""
    query = select(User).where(User.id == user_id).execution_options(populate_existing=True)
    # Key share: rows that refer to the user may be written meanwhile; only writes to the user's own row wait.
    return (await db.exec(query.with_for_update(key_share=True) if lock else query)).first()


def _usable(user: User) -> str | None:
    """Return the stored token if it can be read and does not expire soon."""
    if user.access_token is None or user.token_expires_at is None or user.token_expires_at - _EARLY <= now():
        return None
    try:
        return unseal(user.access_token)
    except UnreadableToken:
        return None


async def _refreshed(outside: Gateways, user_id: int) -> str:
    """Exchange the refresh token, one process at a time.

    Runs in its own transaction and task: Discord replaces the refresh token at once, so the new one must be stored even
    if the calling use case rolls back or is cancelled.
    """
    async with transaction() as db:
        user = await _row(db, user_id, lock=True)
        if user is None or not user.connected:
            raise NotConnected
        token = _usable(user)
        if token is not None:
            return token
        try:
            last = TokenSet("", unseal(user.refresh_token or b""), user.token_expires_at or now(), "")
            tokens = await outside.oauth.refresh(last)
        except (UnreadableToken, GrantRefused):
            tokens = None
        except ProviderError as error:
            raise unavailable(error) from error
        user.connected, user.updated_at = tokens is not None, now()
        if tokens is not None:
            user.access_token, user.token_expires_at = seal(tokens.access_token), corrected(tokens.expires_at)
            user.refresh_token = seal(tokens.refresh_token) if tokens.refresh_token else user.refresh_token
        db.add(user)
    if tokens is None:
        raise NotConnected
    return tokens.access_token


async def _ask_discord(outside: Gateways, user_id: int) -> None:
    """Ask Discord whether the grant is still valid, and for the person's present name.

    An outage changes nothing. A token due for refresh is left alone, because a refresh must not be cancelled by the
    short time limit here.
    """
    async with transaction() as db:
        user = await _row(db, user_id)
    if user is None or not user.connected or user.updated_at > now() - ASKED_EVERY or (token := _usable(user)) is None:
        return
    values: dict[str, object]
    try:
        async with asyncio.timeout(_PATIENCE):
            values = _told(await outside.oauth.me(token))
    except Unauthorized:
        values = {"connected": False}
    except (ProviderError, TimeoutError):
        values = {}
    async with transaction() as db:
        # Only while the grant is the one that was asked about: the person may have signed in again meanwhile.
        asked = update(User).where(col(User.id) == user_id, col(User.access_token) == user.access_token)
        await db.exec(asked.values(updated_at=now(), **values))
