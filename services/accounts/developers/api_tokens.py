"""API tokens of a server: created by its admins for their programs, found by their hash, and revoked.

A token gives access to one server and only to what its scopes open. It never has more rights than its creator has there
at that moment: it stops working while they do not run the server, and is deleted with their account or the server.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import func
from sqlmodel import col, delete, select, update

from gateways import Gateways
from gateways.transport.plain_text import one_line
from locales import N_, _, ngettext
from models import Access, ApiToken, Server, User, now
from models.db.session import AsyncSession
from services.accounts import sessions
from services.core import audit
from services.core.actors import Actor, TokenUse
from services.core.errors import ApiTokenNotFound, Conflict, FieldRefused
from services.core.json_view import json_view
from services.guilds import permissions

SCOPES = ("read", "rules", "members")
"""All scopes that a token can have, in the order in which people see them."""
PREFIX = "hf_"
MOST = 20
"""The most unexpired tokens of one server, and the most expired ones that it keeps for a while."""
LONGEST_NAME = 50
USUAL_LIFE, LONGEST_LIFE = timedelta(days=90), timedelta(days=366)
_SHOWN = len(PREFIX) + 5
_TOKEN = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")
_SEEN_EVERY = timedelta(minutes=1)
_TOO_LATE = N_("A token expires within a year and a day at the latest.")


@json_view
class ApiTokenView:
    """An API token as admins see it, without the token itself.

    `state` is `active`, `expired`, or `stopped` while its creator does not run the server. `prefix` is the token's
    beginning.
    """

    id: int
    name: str
    prefix: str
    scopes: tuple[str, ...]
    state: str
    created_by: str
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just created; `token` cannot be read again."""

    view: ApiTokenView
    token: str


async def list_of(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> tuple[ApiTokenView, ...]:
    """Return the server's tokens, the newest first. Raises ServerNotFound unless the actor runs it."""
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    return await _views(db, server_id)


async def _views(db: AsyncSession, server_id: int) -> tuple[ApiTokenView, ...]:
    rows = await db.exec(
        select(ApiToken, func.coalesce(User.global_name, User.username), Access.discord_id)
        .join(User, col(User.id) == col(ApiToken.user_id))
        .outerjoin(
            Access,
            (col(Access.server_id) == col(ApiToken.server_id)) & (col(Access.discord_id) == col(User.discord_id)),
        )
        .where(ApiToken.server_id == server_id)
        .order_by(col(ApiToken.id).desc())
    )
    return tuple(
        ApiTokenView(
            row.id or 0, row.name, row.prefix, tuple(row.scopes), _state(row, runs_it=bool(runs)),
            creator, row.created_at, row.used_at, row.expires_at,
        )
        for row, creator, runs in rows.all()
    )  # fmt: skip


def _state(row: ApiToken, *, runs_it: bool) -> str:
    if row.expires_at <= now():
        return "expired"
    return "active" if runs_it else "stopped"


async def create(
    db: AsyncSession,
    outside: Gateways,
    actor: Actor,
    server_id: int,
    name: str,
    scopes: Sequence[str],
    expires_at: datetime | None = None,
) -> NewToken:
    """Create a token of 256 random bits and return it; only its hash is stored. It expires after USUAL_LIFE by default.

    Raises ServerNotFound, ProviderUnavailable, FieldRefused, and Conflict when the server has MOST tokens already.
    """
    name, scopes, end = _name(name), _scopes(scopes), _end(expires_at)
    await permissions.require_admin(db, outside, actor, server_id)
    # One creation at a time, so that two concurrent ones do not both pass the count.
    await db.exec(select(Server.id).where(Server.id == server_id).with_for_update(key_share=True))
    expired = col(ApiToken.server_id) == server_id, col(ApiToken.expires_at) <= now()
    kept = select(ApiToken.id).where(*expired, col(ApiToken.expires_at) > now() - USUAL_LIFE)
    newest = kept.order_by(col(ApiToken.expires_at).desc()).limit(MOST)
    await db.exec(delete(ApiToken).where(*expired, col(ApiToken.id).not_in(newest)))
    live = select(func.count()).where(col(ApiToken.server_id) == server_id, col(ApiToken.expires_at) > now())
    if (await db.exec(live)).one() >= MOST:
        said = ngettext(
            "A server has at most {count} API token. Revoke one first.",
            "A server has at most {count} API tokens. Revoke one first.",
            MOST,
        )
        raise Conflict(said.format(count=MOST))
    token = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken(
        server_id=server_id, user_id=actor.user_id, name=name, hash=sessions.hash_of(token), prefix=token[:_SHOWN],
        scopes=list(scopes), expires_at=end,
    )  # fmt: skip
    db.add(row)
    await db.flush()
    data = {"name": name, "scopes": list(scopes), "expiresAt": end.isoformat()}
    await audit.record(db, audit.line("token.created", server_id=server_id, actor=actor.discord_id, data=data))
    view = next(one for one in await _views(db, server_id) if one.id == row.id)
    return NewToken(view, token)


def _name(given: str) -> str:
    name = " ".join(given.split())
    # Emoji and several scripts need joiners, which Python does not count as printable.
    if not name or len(name) > LONGEST_NAME or name != one_line(name):
        said = ngettext(
            "The name needs 1 to {count} character.", "The name needs 1 to {count} characters.", LONGEST_NAME
        )
        raise FieldRefused("name", said.format(count=LONGEST_NAME))
    return name


def _scopes(given: Sequence[str]) -> tuple[str, ...]:
    if not given or set(given) - set(SCOPES):
        raise FieldRefused("scopes", _("Choose at least one of: {scopes}.").format(scopes=", ".join(SCOPES)))
    return tuple(scope for scope in SCOPES if scope in given)


def _end(given: datetime | None) -> datetime:
    if given is None:
        return now() + USUAL_LIFE
    end = given.replace(tzinfo=UTC) if given.tzinfo is None else given
    if end <= now():
        raise FieldRefused("expiresAt", _("The end has to be in the future."))
    if end > now() + LONGEST_LIFE:
        raise FieldRefused("expiresAt", _(_TOO_LATE))
    return end


async def revoke(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, token_id: int | None) -> int:
    """Delete one token of the server, or all for None, and return how many; they stop working at once.

    Raises ServerNotFound, ProviderUnavailable, ApiTokenNotFound.
    """
    await permissions.require_admin(db, outside, actor, server_id)
    gone = delete(ApiToken).where(col(ApiToken.server_id) == server_id)
    if token_id is not None:
        gone = gone.where(col(ApiToken.id) == token_id)
    names = [str(name) for (name,) in (await db.execute(gone.returning(col(ApiToken.name)))).all()]
    if token_id is not None and not names:
        raise ApiTokenNotFound
    lines = [
        audit.line("token.revoked", server_id=server_id, actor=actor.discord_id, data={"name": name}) for name in names
    ]
    await audit.record_all(db, lines)
    return len(names)


async def is_valid(db: AsyncSession, token_id: int) -> bool:
    """Return whether a token that began a call is still there and has not expired."""
    found = await db.exec(select(ApiToken.id).where(ApiToken.id == token_id, col(ApiToken.expires_at) > now()))
    return found.first() is not None


async def actor_of(db: AsyncSession, token: str) -> Actor | None:
    """Return the creator with the token's limits, or None if the token is malformed, unknown, revoked or expired."""
    if not _TOKEN.fullmatch(token):
        return None
    moment = now()
    found = (
        await db.exec(
            select(ApiToken, User.discord_id, User.username)
            .join(User, col(User.id) == col(ApiToken.user_id))
            .where(ApiToken.hash == sessions.hash_of(token), col(ApiToken.expires_at) > moment)
        )
    ).first()
    if found is None:
        return None
    row, discord_id, username = found
    if row.used_at is None or row.used_at < moment - _SEEN_EVERY:
        # Skip a locked row, so that no call waits for another to end.
        free = select(ApiToken.id).where(ApiToken.id == row.id).with_for_update(skip_locked=True)
        await db.exec(update(ApiToken).where(col(ApiToken.id).in_(free)).values(used_at=moment))
    use = TokenUse(row.id or 0, row.name, row.server_id, frozenset(row.scopes))
    return Actor(user_id=row.user_id, discord_id=discord_id, username=username, token=use)
