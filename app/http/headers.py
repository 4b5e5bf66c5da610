"""The headers that every answer carries, unless what answers has set its own."""

from functools import cache

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
_HSTS = {"Strict-Transport-Security": "max-age=31536000"}


@cache
def _wanted(is_call: bool, https: bool) -> list[tuple[bytes, bytes]]:
    """The headers as they go over the wire."""
    named = _EVERYWHERE | (_CALLS if is_call else {}) | (_HSTS if https else {})
    return [(name.lower().encode(), value.encode()) for name, value in named.items()]


class SecurityHeaders:
    """Adds them to pages, files and calls; calls are never cached, because their answers are personal."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add what the answer lacks."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        is_call = path.startswith(("/api/", "/health")) or path == "/metrics"
        wanted = _wanted(is_call, settings().https)

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in wanted if one[0] not in present)]
            await send(message)

        await self._app(scope, receive, add)
