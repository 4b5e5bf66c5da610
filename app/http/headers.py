"""Security headers for every answer that does not set its own, and the content security policy of a screen."""

import base64
import hashlib
import re
from functools import cache
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http import languages
from app.http.middleware import HttpMiddleware
from locales import _
from settings import settings

_EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_CALLS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
_HIDES = {"Referrer-Policy": "no-referrer"}
_REFUSED = {"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
_INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.S)
_HSTS = {"Strict-Transport-Security": "max-age=31536000"}


@cache
def _wanted(is_call: bool, https: bool, hides: bool) -> list[tuple[bytes, bytes]]:
    """Return the headers to send; `hides` where the URL must not leak in a Referer."""
    named = _EVERYWHERE | (_CALLS if is_call else {}) | (_HSTS if https else {}) | (_HIDES if hides else {})
    return [(name.lower().encode(), value.encode()) for name, value in named.items()]


class SecurityHeaders(HttpMiddleware):
    """Adds the headers to pages, files and API calls. Calls are never cached, because their answers are personal."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the missing headers."""
        path: str = scope["path"]
        is_call = path.startswith(("/api/", "/health")) or path == "/metrics"
        wanted = _wanted(is_call, settings().https, _has_session(scope))

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _value in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in wanted if one[0] not in present)]
            await send(message)

        await self._app(scope, receive, add)


def page_policy(html: str) -> str:
    """Return the document's CSP: its inline scripts by their hashes, our own files, and pictures from Discord.

    Reflex's style library writes its rules into the page, hence 'unsafe-inline' for styles alone.
    """
    scripts = (hashlib.sha256(script.encode()).digest() for script in _INLINE_SCRIPT.findall(html))
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in scripts)
    socket = settings().public_url.replace("http", "ws", 1).rstrip("/")
    pictures = "{0.scheme}://{0.netloc}".format(urlsplit(settings().discord_cdn_url))
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {hashes}",
            "style-src 'self' 'unsafe-inline'",
            f"img-src 'self' data: {pictures}",
            "font-src 'self'",
            f"connect-src 'self' {socket}",
            "manifest-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


def refusal(scope: Scope, status: int, message: str, **values: str) -> ASGIApp:
    """Return the answer to a refused request: a sentence of the catalogue with its values, or a socket's end."""
    if scope["type"] == "websocket":
        return _close
    with languages.of_request(Headers(scope=scope)):
        said = _(message).format(**values)
    return SecurityHeaders(JSONResponse({"message": said}, status, _REFUSED))


async def _close(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a WebSocket before it opens; the server answers 403."""
    await receive()
    await send({"type": "websocket.close", "code": 1008})


def _has_session(scope: Scope) -> bool:
    """Return whether the query carries a session id, which would leak in a Referer."""
    query: bytes = scope.get("query_string", b"")
    return any(name == "session" for name, _value in parse_qsl(query.decode("latin-1"), keep_blank_values=True))
