"""The caller: the session of a request, by cookie or by header, and its person."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import Headers

from app.api.requests.rates import limits_of
from models import reading
from services.accounts import sessions
from services.core.actors import Actor
from services.core.errors import NotSignedIn
from services.runtime import rate_limits


def shown_session_id(headers: Headers) -> str | None:
    """Return the session id of a request, or None. Raises NotSignedIn when cookie and header have different ones."""
    by_cookie = sessions.session_id_from_cookie_header(headers.get("cookie"))
    by_header = headers.get(sessions.HEADER) or None
    if by_cookie is not None and by_header is not None and by_cookie != by_header:
        raise NotSignedIn
    return by_header or by_cookie


async def caller_of(request: Request) -> Actor:
    """Return the signed-in person of a request, and count the call. Raises NotSignedIn and TooMany."""
    actor = await known_caller(request)
    for limit in limits_of(request.method, request.url.path):
        await rate_limits.spend(limit, actor.user_id)
    return actor


async def known_caller(request: Request) -> Actor:
    """Return the signed-in person of a request without counting the call. Raises NotSignedIn."""
    session_id = shown_session_id(request.headers)
    if session_id is None:
        raise NotSignedIn
    async with reading() as db:
        actor = await sessions.actor_of(db, session_id)
    if actor is None:
        raise NotSignedIn
    return actor


Caller = Annotated[Actor, Depends(caller_of)]
"""The signed-in person; without one the call answers 401 before any other check."""
