"""Sign-in with Discord: each attempt is bound to one browser and allows one return."""

import hmac
import logging
import secrets
from dataclasses import dataclass, field
from datetime import timedelta

from sqlmodel import col, delete

from gateways import Gateways
from gateways.discord.oauth import TokenSet
from gateways.discord.types import OAuthUser
from gateways.transport.errors import ProviderError, Unauthorized
from models import SignIn, User, now
from models.db.session import AsyncSession
from services.accounts import sessions, users
from services.accounts.return_paths import checked_return_path, with_session
from services.core import audit
from services.core.actors import Actor
from services.core.errors import SignInFailed
from settings import CALLBACK_PATH, settings

SCOPES = ("identify", "guilds")
SIGN_IN, CONNECT = "sign_in", "connect"
HOME = {SIGN_IN: "/dashboard", CONNECT: "/invite"}
"""Where a sign-in ends if it has no return path."""
SIGN_IN_LIFE = timedelta(minutes=10)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Journey:
    """A sign-in that returned to the browser where it began."""

    purpose: str
    verifier: str
    return_path: str
    user_id: int | None


@dataclass(frozen=True, slots=True)
class SignInProof:
    """The person's identity and grant, as Discord returned them."""

    person: OAuthUser
    tokens: TokenSet


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A browser that has just been signed in."""

    user_id: int
    session_id: str
    return_path: str
    former_token: str | None = field(repr=False)
    """Discord's token to revoke of somebody else, whose last session was this browser's former one."""


def redirect_uri() -> str:
    """Return the URL to which Discord sends people back: under PUBLIC_URL, whatever a request's headers say."""
    return settings().public_url.rstrip("/") + CALLBACK_PATH


def new_login_cookie() -> str:
    """Return 256 random bits that bind a sign-in to one browser."""
    return secrets.token_urlsafe(32)


async def begin(
    db: AsyncSession,
    outside: Gateways,
    *,
    purpose: str,
    return_path: str | None,
    login_cookie: str,
    user_id: int | None = None,
) -> str:
    """Record the start of a sign-in; return Discord's URL for the browser, which has ten minutes to return."""
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    db.add(
        SignIn(
            state_hash=sessions.hash_of(state),
            cookie_hash=sessions.hash_of(login_cookie),
            verifier=verifier,
            return_path=checked_return_path(return_path) or HOME[purpose],
            purpose=purpose,
            user_id=user_id,
            expires_at=now() + SIGN_IN_LIFE,
        )
    )
    return outside.oauth.authorize_url(state=state, verifier=verifier, scopes=SCOPES, redirect_uri=redirect_uri())


async def take(db: AsyncSession, *, state: str, login_cookie: str | None) -> Journey | None:
    """Return the sign-in that this return completes, or None if it is unknown, expired, or another browser's.

    Commit before asking Discord: presenting a state uses it up, whatever follows.
    """
    taken = delete(SignIn).where(col(SignIn.state_hash) == sessions.hash_of(state)).returning(SignIn)
    row = (await db.execute(taken)).scalar_one_or_none()
    if row is None or row.expires_at <= now() or login_cookie is None:
        return None
    if not hmac.compare_digest(row.cookie_hash, sessions.hash_of(login_cookie)):
        return None
    return Journey(row.purpose, row.verifier, row.return_path, row.user_id)


async def ask(outside: Gateways, journey: Journey, code: str) -> SignInProof:
    """Exchange the code at Discord and read the person. Raises SignInFailed when Discord refuses or fails."""
    try:
        try:
            tokens = await outside.oauth.exchange(code=code, verifier=journey.verifier, redirect_uri=redirect_uri())
        except Unauthorized:  # a code that is refused is another error
            _log.critical(
                "Discord rejects DISCORD_CLIENT_SECRET. Copy it again: Developer Portal › OAuth2 › Reset Secret."
            )
            raise
        return SignInProof(await outside.oauth.me(tokens.access_token), tokens)
    except ProviderError as error:
        _log.warning("sign-in failed reason=%s", error)
        raise SignInFailed from error


async def finish(
    db: AsyncSession, journey: Journey, proof: SignInProof, *, old_session_id: str | None, user_agent: str
) -> SignedIn:
    """Store the person and open a new session for their browser; close its former session.

    If that was the last session of somebody else, their grant is deleted as by `sign_out`. Raises SignInFailed when
    somebody connects a Discord account other than the one they are signed in with.
    """
    if journey.user_id is not None:
        user = await db.get(User, journey.user_id)
        if user is None or user.discord_id != proof.person.id:
            raise SignInFailed
    former_id = await sessions.close(db, old_session_id, arriving=proof.person.id)
    user_id = await users.keep(db, proof.person, proof.tokens)
    session_id = await sessions.open_session(db, user_id, user_agent)
    left = None if former_id == user_id else former_id
    former_token = None if left is None else await users.drop_discord_grant(db, left)
    kind = "user.connected" if journey.purpose == CONNECT else "user.signed_in"
    await audit.record(db, audit.line(kind, actor=proof.person.id, subject=proof.person.id))
    return SignedIn(user_id, session_id, with_session(journey.return_path, session_id), former_token)


async def sign_out(db: AsyncSession, session_id: str | None) -> str | None:
    """Close a session; return Discord's token to revoke if it was the person's last session, or None."""
    user_id = await sessions.close(db, session_id)
    return None if user_id is None else await users.drop_discord_grant(db, user_id)


async def sign_out_one(db: AsyncSession, actor: Actor, view_id: str) -> str | None:
    """Close one of the actor's sessions; return Discord's token as `sign_out` does. Raises SessionNotFound."""
    user_id = await sessions.close_one(db, actor, view_id)
    return None if user_id is None else await users.drop_discord_grant(db, user_id)


async def revoke(outside: Gateways, token: str | None) -> None:
    """Revoke the grant at Discord. If that fails, the token is still deleted here."""
    if token is None:
        return
    try:
        await outside.oauth.revoke(token)
    except ProviderError as error:
        _log.warning("token deleted but not revoked reason=%s", error)
