"""Refuse everybody but this machine, and pages of other sites in its browser."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")


@web.middleware
async def only_this_machine(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer this machine alone, under its own name, and nothing that another site's page may change or read."""
    host = request.headers.get("Host", "")
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if name not in LOOPBACK_HOSTS:
        return web.json_response({"message": "The sandbox answers this machine only."}, status=421)
    # A WebSocket begins as a GET, and no browser keeps another site's page from reading it.
    if _is_foreign(request) and (request.method != "GET" or "Upgrade" in request.headers):
        return web.json_response({"message": "Another site may not steer the sandbox."}, status=403)
    return await handler(request)


def _is_foreign(request: web.Request) -> bool:
    """Return whether another site's page made a browser send this; old browsers send only the page's origin."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None or origin is None:
        return site == "cross-site"
    try:
        return urlsplit(origin).netloc.rsplit(":", 1)[0] not in LOOPBACK_HOSTS
    except ValueError:
        return True
