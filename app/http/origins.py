"""Refuses requests that another site made a browser send, if they would change something."""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from app.http.middleware import HttpMiddleware
from locales import N_, _
from services.accounts import sessions
from settings import settings

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_FOREIGN = N_("This request came from another site and was refused.")


class OriginGate(HttpMiddleware):
    """Refuses (403) an unsafe request whose session comes from the cookie and whose Origin is not PUBLIC_URL.

    A request with its session in the `x-session-id` header needs no Origin: another site cannot make a browser
    send that header.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["method"] not in _SAFE and _is_foreign(Headers(scope=scope)):
            await JSONResponse({"message": _(_FOREIGN)}, status_code=403)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_foreign(headers: Headers) -> bool:
    if headers.get(sessions.HEADER) or f"{sessions.cookie_name()}=" not in (headers.get("cookie") or ""):
        return False
    origins = headers.getlist("origin")
    return any(not is_ours(origin) for origin in origins) or headers.get("sec-fetch-site") == "cross-site"


def is_ours(origin: str) -> bool:
    """Return whether an Origin header names this site; `null` (a sandboxed frame, a file) does not."""
    return origin.lower() == settings().public_url.rstrip("/").lower()


def asked_for_by_us(headers: Headers) -> bool:
    """Return whether a visit (GET) was started on this site or typed in.

    False for links, images and frames of other sites, and for a prefetch (Purpose, Sec-Purpose).
    """
    if "prefetch" in (headers.get("sec-purpose") or headers.get("purpose") or "").lower():
        return False
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    referrer = headers.get("referer")
    public = settings().public_url.rstrip("/")
    return not referrer or referrer == public or referrer.startswith(f"{public}/")
