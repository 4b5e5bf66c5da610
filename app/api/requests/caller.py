"""The caller of a request: its session (by cookie or header) or its API token, and the person behind it."""

from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.datastructures import Headers

from app.api.requests import scopes
from app.api.requests.limits_by_path import limits_of
from models import reading
from services.accounts import sessions
from services.accounts.developers import api_tokens
from services.core import actors
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


def shown_token(headers: Headers) -> str | None:
    """Return the API token of a request, or None. Raises NotSignedIn when it has a session as well."""
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    # Proxies add credentials of their own, which are not meant for us.
    if scheme.lower() != "bearer" or not token.strip().startswith(api_tokens.PREFIX):
        return None
    if shown_session_id(headers) is not None:
        raise NotSignedIn
    return token.strip()


async def caller_of(request: Request) -> Actor:
    """Return the signed-in person of a request, or a token's creator within the token's bounds, and count the call.

    Raises NotSignedIn, TooMany, and for a token the errors of `scopes.check`.
    """
    actor = await known_caller(request)
    actors.begin(actor)
    for limit in limits_of(request.method, request.url.path):
        await rate_limits.spend_for(limit, actor)
    if actor.token is not None:
        route = cast("APIRoute", request.scope["route"])
        scopes.check(actor.token, request.method, route.path_format, request.path_params.get("server_id"))
    return actor


async def known_caller(request: Request) -> Actor:
    """Return the caller of a request without counting the call or checking scopes. Raises NotSignedIn."""
    token, session_id = shown_token(request.headers), shown_session_id(request.headers)
    if token is None and session_id is None:
        raise NotSignedIn
    async with reading() as db:
        actor = await sessions.actor_of(db, session_id) if token is None else await api_tokens.actor_of(db, token)
    if actor is None:
        raise NotSignedIn
    return actor


Caller = Annotated[Actor, Depends(caller_of)]
"""The signed-in person, or a program with its token. Without either, the call answers 401 before any other check."""
