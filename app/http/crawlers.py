"""Serves /robots.txt and /sitemap.xml with the public URL."""

from collections.abc import Iterable
from xml.sax.saxutils import escape

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.middleware import HttpMiddleware
from settings import settings


class Crawlers(HttpMiddleware):
    """Answers both paths and passes on everything else. The sitemap lists public pages only."""

    def __init__(self, app: ASGIApp, routes: Iterable[str]) -> None:
        super().__init__(app)
        self._routes = tuple(routes)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        path: str = scope.get("path", "")
        if path not in {"/robots.txt", "/sitemap.xml"}:
            await self._app(scope, receive, send)
            return
        site = settings().public_url.rstrip("/")
        if path == "/robots.txt":
            answer = Response(f"User-agent: *\nDisallow: /api/\nSitemap: {site}/sitemap.xml\n", media_type="text/plain")
        else:
            answer = Response(_map(site, self._routes), media_type="application/xml")
        await answer(scope, receive, send)


def _map(site: str, routes: Iterable[str]) -> str:
    places = "".join(f"<url><loc>{escape(site + route)}</loc></url>" for route in routes)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>'
    )
