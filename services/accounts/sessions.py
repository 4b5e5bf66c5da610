"""Sessions of signed-in browsers: opened at sign-in, found by the hash of a random id, closed at log-out.

`app/api/auth.py` sets and deletes the cookie.
"""

import hashlib
import re
import secrets
from datetime import datetime, timedelta

from sqlalchemy import bindparam
from sqlmodel import col, delete, func, select, update

from locales import _
from models import Session, User, now
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.errors import SessionNotFound
from services.core.json_view import json_view
from settings import settings

# The first match wins: the user agents of browsers listed earlier also contain names listed later.
_BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser", "Samsung Internet"), ("Firefox/", "Firefox"),
    ("FxiOS", "Firefox"), ("CriOS", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"),
)  # fmt: skip
_SYSTEMS = (
    ("Windows", "Windows"), ("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"), ("Linux", "Linux"),
)  # fmt: skip


def name_of(user_agent: str) -> str:
    """Return a label such as `Firefox on Linux`; an unknown user agent is shown shortened."""
    browser = next((name for sign, name in _BROWSERS if sign in user_agent), "")
    system = next((name for sign, name in _SYSTEMS if sign in user_agent), "")
    if browser and system:
        return _("{browser} on {system}").format(browser=browser, system=system)
    return browser or system or user_agent[:40] or _("A program without a name")


STORAGE_KEY = "session-id"
"""The key of the id in the browser's local storage."""
HEADER = "x-session-id"
LOGIN_COOKIE = "hf_login"
"""The name of the cookie that binds a sign-in to the browser that began it."""
SESSION_LIFE = timedelta(days=7)
"""As long as Discord's grant lasts (docs/facts.md#discord-oauth2). The privacy policy names it."""
MOST = 1_000
"""Sessions that one person may have; a further one ends the one that was not used for longest."""
_SEEN_EVERY = timedelta(minutes=1)
_ACTOR = (
    select(col(User.id), User.discord_id, User.username, Session.seen_at)
    .join(Session, col(Session.user_id) == col(User.id))
    .where(col(Session.id_hash) == bindparam("id_hash"), col(Session.expires_at) > bindparam("now"))
)
"""The query for a session's actor. It runs for every call and event, so it is built once and selects few columns."""
_ID = re.compile(r"[A-Za-z0-9_-]{43}")
_AGENT_LENGTH = 300


@json_view
class SessionView:
    """A signed-in browser as shown to its owner; `id` names it in calls and grants no access."""

    id: str
    user_agent: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    current: bool


def cookie_name() -> str:
    """Return the session cookie's name; on https browsers refuse it without Secure and Path=/ (RFC 6265bis §4.1.3)."""
    return _named("hf_session")


def login_cookie_name() -> str:
    """Return the name of the cookie that binds a sign-in to its browser."""
    return _named(LOGIN_COOKIE)


def _named(name: str) -> str:
    return f"__Host-{name}" if settings().https else name


def hash_of(secret: str) -> bytes:
    """Return the hash to store for a secret that we made; 256 random bits need neither salt nor stretching."""
    return hashlib.sha256(secret.encode()).digest()


def session_id_from_cookie_header(header: str | None) -> str | None:
    """Return the session id in a Cookie header, or None; two different ones count as none."""
    return cookie_from_header(header, cookie_name())


def cookie_from_header(header: str | None, name: str) -> str | None:
    """Return the value of the named cookie, or None if it is absent, empty or present with different values."""
    values: set[str] = set()
    for part in (header or "").split(";"):
        key, found, value = part.strip().partition("=")
        if found and key == name:
            values.add(value.strip().strip('"'))
    return (values.pop() or None) if len(values) == 1 else None


async def open_session(db: AsyncSession, user_id: int, user_agent: str) -> str:
    """Sign a browser in and return the session's id: 256 random bits as 43 characters, stored only as a hash.

    It lives for SESSION_LIFE, or as long as Discord's grant if that ends earlier.
    """
    session_id = secrets.token_urlsafe(32)
    printable = "".join(letter for letter in user_agent if letter.isprintable())
    end = now() + SESSION_LIFE
    grant_end = (await db.exec(select(User.token_expires_at).where(User.id == user_id))).first()
    db.add(
        Session(
            id_hash=hash_of(session_id),
            user_id=user_id,
            user_agent=printable[:_AGENT_LENGTH],
            expires_at=min(end, grant_end) if grant_end is not None else end,
        )
    )
    await db.flush()
    mine = select(Session.id_hash).where(Session.user_id == user_id).order_by(col(Session.seen_at).desc())
    excess = mine.offset(MOST).with_for_update(skip_locked=True)
    await db.exec(delete(Session).where(col(Session.id_hash).in_(excess)))
    return session_id


async def actor_of(db: AsyncSession, session_id: str | None) -> Actor | None:
    """Return the session's actor, or None if the id is absent, malformed, unknown, closed or expired."""
    if session_id is None or not _ID.fullmatch(session_id):
        return None
    id_hash, moment = hash_of(session_id), now()
    found = (await db.execute(_ACTOR, {"id_hash": id_hash, "now": moment})).first()
    if found is None:
        return None
    user_id, discord_id, username, seen_at = found
    if seen_at < moment - _SEEN_EVERY:
        await _touch(db, id_hash)
    return Actor(user_id=user_id, discord_id=discord_id, username=username, session_hash=id_hash)


async def is_open(db: AsyncSession, id_hash: bytes) -> bool:
    """Return whether a session that began a call is still there and has not expired."""
    found = select(Session.id_hash).where(Session.id_hash == id_hash, col(Session.expires_at) > now())
    return (await db.exec(found)).first() is not None


async def _touch(db: AsyncSession, id_hash: bytes) -> None:
    """Record the session's use unless its row is locked, so that no request waits for another to end."""
    free = select(Session.id_hash).where(Session.id_hash == id_hash).with_for_update(skip_locked=True)
    await db.exec(update(Session).where(col(Session.id_hash).in_(free)).values(seen_at=now()))


async def close(db: AsyncSession, session_id: str | None, *, arriving: str | None = None) -> int | None:
    """End a session; return the user's id if it was their last one, or None. An unknown id is not an error.

    `arriving` is the Discord id of the person who signs in instead. Their row stays locked, as the owner's, until the
    transaction ends.
    """
    known = session_id if session_id is not None and _ID.fullmatch(session_id) else ""
    await db.execute(_LOCK, {"session": hash_of(known), "who": arriving})
    ended = delete(Session).where(col(Session.id_hash) == hash_of(known)).returning(col(Session.user_id))
    user_id = (await db.exec(ended)).scalar_one_or_none()
    return None if user_id is None or await _living(db, user_id) else user_id


# All that begins or ends a session locks its owner first. So of a sign-in and the end of the last other session, or of
# the ends of the last two, each sees what the other did. A deletion of data locks the person before their sessions too.
# In a fixed order, or two people who exchange browsers could wait for each other.
_LOCK = """
    SELECT id FROM "user" WHERE discord_id = CAST(:who AS text)
    OR id = (SELECT user_id FROM session WHERE id_hash = CAST(:session AS bytea)) ORDER BY id FOR NO KEY UPDATE
"""


async def _living(db: AsyncSession, user_id: int) -> int:
    """Return the number of a user's live sessions, of which this transaction may have ended some."""
    alive = select(func.count()).where(Session.user_id == user_id, col(Session.expires_at) > now())
    return (await db.exec(alive)).one()


async def close_one(db: AsyncSession, actor: Actor, view_id: str) -> int | None:
    """End one of the actor's own sessions, named by its view; return their id if it was the last one, or None.

    Raises SessionNotFound for anything else.
    """
    await db.execute(_LOCK, {"session": actor.session_hash, "who": actor.discord_id})
    for session in await _of(db, actor):
        if _view_id(session) == view_id:
            await db.delete(session)
            await db.flush()
            return None if await _living(db, actor.user_id) else actor.user_id
    raise SessionNotFound


async def close_all(db: AsyncSession, actor: Actor) -> int:
    """End every session of the actor, this one included; return how many there were."""
    await db.execute(_LOCK, {"session": actor.session_hash, "who": actor.discord_id})
    ended = await db.exec(delete(Session).where(col(Session.user_id) == actor.user_id))
    return ended.rowcount


async def list_of(db: AsyncSession, actor: Actor) -> list[SessionView]:
    """Return the actor's live sessions, last used first."""
    return [
        SessionView(
            id=_view_id(session),
            user_agent=session.user_agent,
            created_at=session.created_at,
            seen_at=session.seen_at,
            expires_at=session.expires_at,
            current=session.id_hash == actor.session_hash,
        )
        for session in await _of(db, actor)
    ]


async def _of(db: AsyncSession, actor: Actor) -> list[Session]:
    mine = select(Session).where(Session.user_id == actor.user_id, col(Session.expires_at) > now())
    return list(await db.exec(mine.order_by(col(Session.seen_at).desc(), col(Session.id_hash))))


def _view_id(session: Session) -> str:
    """Return a public name for a session: a part of the hash, which cannot serve as the session's id."""
    return session.id_hash[:12].hex()
