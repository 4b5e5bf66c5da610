"""The host names of this site: PUBLIC_URL's, and any loopback name for programs on this machine."""

import ipaddress
from collections.abc import Iterable
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.headers import refusal
from locales import N_
from setting_checks import USUAL_PORTS
from settings import CALLBACK_PATH, LOOPBACK, settings

# Browser paths that set or need cookies, which belong to one host.
_BROWSER_CALLS = frozenset({"/api/auth/discord", "/api/auth/discord/connect", CALLBACK_PATH, "/api/auth/logout"})
_SAFE = frozenset({"GET", "HEAD"})
# What load balancers, Kubernetes and Prometheus read, and by default ask for by IP address.
_MONITORED = frozenset({"/health", "/health/deep", "/metrics"})


class HostGate:
    """Refuses foreign Host headers (another name pointed at us) and redirects loopback names to PUBLIC_URL."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, redirect it (307), or refuse it (421, or 400 without a readable Host)."""
        answer = _answer(scope) if scope["type"] in {"http", "websocket"} else None
        await (self._app if answer is None else answer)(scope, receive, send)


def _answer(scope: Scope) -> ASGIApp | None:
    """Return the answer to send in place of the app's; None if the host is right."""
    named = Headers(scope=scope).getlist("host")
    host = _host_and_port(named[0]) if len(named) == 1 else None
    if host is None:
        return refusal(scope, 400, N_("The request names no host."))
    if host == _public():
        return None
    if host[0] in LOOPBACK and host[1] in _own_ports():
        return _to_public_url(scope) if _is_page(scope) else None
    if scope["path"] in _MONITORED and _is_ip_address(host[0]):
        return None
    # Translators: PUBLIC_URL is the name of a setting.
    told = N_("This is {url}. Open it there, or set PUBLIC_URL to this address.")
    return refusal(scope, 421, told, url=settings().public_url)


def _host_and_port(text: str) -> tuple[str, int] | None:
    """Split a Host header into name and port (the scheme's default if absent); None if it is invalid."""
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError:
        return None
    if parts.hostname is None or parts.netloc != text or "@" in text:
        return None
    if port is not None and not text.endswith(f":{port}"):
        # Browsers never send a port with a leading zero.
        return None
    scheme = urlsplit(settings().public_url).scheme
    return parts.hostname, port if port is not None else USUAL_PORTS[scheme]


def _is_ip_address(host: str) -> bool:
    """Return whether a host is the IP address of a machine on the network, which DNS rebinding cannot make its own."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _public() -> tuple[str, int] | None:
    return _host_and_port(settings().public_host)


def _own_ports() -> Iterable[int]:
    """Return the ports under which this machine reaches us: the one we listen on and PUBLIC_URL's."""
    public = _public()
    return {settings().port, public[1] if public is not None else settings().port}


def _is_page(scope: Scope) -> bool:
    """Return whether a browser displays the answer, so that cookies and origin matter."""
    if scope["type"] == "websocket" or scope["method"] not in _SAFE:
        return False
    path: str = scope["path"]
    if path in _BROWSER_CALLS:
        return True
    return not (path.startswith(("/api/", "/_")) or path in _MONITORED or path == "/ping")


def _to_public_url(scope: Scope) -> Response:
    """Redirect to the same page under PUBLIC_URL."""
    query = scope["query_string"].decode("latin-1")
    path = "/" + quote(scope["path"]).lstrip("/")
    target = settings().public_url.rstrip("/") + path + (f"?{query}" if query else "")
    return RedirectResponse(target, status_code=307, headers={"Cache-Control": "no-store"})
