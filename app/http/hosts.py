"""Which names this site answers to: PUBLIC_URL's, and for programs on this machine any loopback name."""

from collections.abc import Iterable
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.headers import SecurityHeaders
from settings import LOOPBACK, settings

# Visits of a browser that set or need its cookies, which belong to one name only.
_BROWSER_CALLS = frozenset(
    {"/api/auth/discord", "/api/auth/discord/connect", "/api/auth/discord/callback", "/api/auth/logout"}
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SAFE = frozenset({"GET", "HEAD"})


class HostGate:
    """Refuses foreign Host headers (a name that was pointed at us) and leads loopback's other names to PUBLIC_URL."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, redirect it (307), or refuse it (421, or 400 without a readable Host)."""
        refusal = _answer(scope) if scope["type"] in {"http", "websocket"} else None
        await (self._app if refusal is None else refusal)(scope, receive, send)


def _answer(scope: Scope) -> ASGIApp | None:
    """What is answered instead of the app, or None when the name is right."""
    named = Headers(scope=scope).getlist("host")
    host = _host_and_port(named[0]) if len(named) == 1 else None
    if host is None:
        return _refuse(scope, 400, "The request names no host.")
    if host == _public():
        return None
    if host[0] in LOOPBACK and host[1] in _own_ports():
        return _to_public_url(scope) if _is_page(scope) else None
    return _refuse(scope, 421, f"This is {settings().public_url}. Open it there, or set PUBLIC_URL to this address.")


def _host_and_port(text: str) -> tuple[str, int] | None:
    """A Host header as name and port, the scheme's own port if it names none; None when it is not a host."""
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError:
        return None
    if parts.hostname is None or parts.netloc != text or "@" in text:
        return None
    if port is not None and not text.endswith(f":{port}"):
        # A port with a zero in front, which no browser sends.
        return None
    scheme = urlsplit(settings().public_url).scheme
    return parts.hostname, port if port is not None else _DEFAULT_PORTS[scheme]


def _public() -> tuple[str, int] | None:
    return _host_and_port(settings().public_host)


def _own_ports() -> Iterable[int]:
    """The ports under which this machine reaches us: the one we listen on, and PUBLIC_URL's."""
    public = _public()
    return {settings().port, public[1] if public is not None else settings().port}


def _is_page(scope: Scope) -> bool:
    """Whether a browser looks at it, so that its cookies and its origin matter."""
    if scope["type"] == "websocket" or scope["method"] not in _SAFE:
        return False
    path: str = scope["path"]
    if path in _BROWSER_CALLS:
        return True
    return not (path.startswith(("/api/", "/_")) or path in {"/health", "/health/deep", "/metrics", "/ping"})


def _to_public_url(scope: Scope) -> Response:
    """The same page under the name that everybody uses."""
    query = scope["query_string"].decode("latin-1")
    path = "/" + quote(scope["path"]).lstrip("/")
    target = settings().public_url.rstrip("/") + path + (f"?{query}" if query else "")
    return RedirectResponse(target, status_code=307, headers={"Cache-Control": "no-store"})


def _refuse(scope: Scope, status: int, message: str) -> ASGIApp:
    if scope["type"] == "websocket":
        return _close
    headers = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    }
    return SecurityHeaders(JSONResponse({"message": message}, status_code=status, headers=headers))


async def _close(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a WebSocket before it opens; the server answers 403."""
    await receive()
    await send({"type": "websocket.close", "code": 1008})
