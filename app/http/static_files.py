"""Static files: immutable caching for hashed names, and one chunk rewritten with the public URL."""

import re
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.http import languages
from app.http.middleware import HttpMiddleware
from settings import ROOT

BUILT = ROOT / ".web" / "build" / "client"
"""Where Reflex puts the built screens."""
IMMUTABLE = "public, max-age=31536000, immutable"
_UNSTEADY = "no-cache"
_A_DAY = "public, max-age=86400"
_ADDRESSES = re.compile(r"""(["'`])(http|ws)://localhost:3000(/[^"'`$]*)\1""")
_ENVIRONMENT = re.compile(r"/assets/reflex-env-[\w-]+\.js")


class BuiltAddressMissing(Exception):
    """Raised when the built chunk holds no URL in the expected form, so the screens would call the wrong server."""


def with_page_url(chunk: str) -> str:
    """Return the chunk with every built-in URL replaced by that of the page that loads it.

    Over http Reflex bakes the port of the build into this chunk. Raises BuiltAddressMissing.
    """
    told, count = _ADDRESSES.subn(_own_origin, chunk)
    if count == 0:
        raise BuiltAddressMissing(chunk[:200])
    return told


def _own_origin(match: re.Match[str]) -> str:
    origin = "location.origin" if match[2] == "http" else 'location.origin.replace(/^http/,"ws")'
    return f'({origin}+"{match[3]}")'


class BuiltFiles(HttpMiddleware):
    """Serves the rewritten chunk, and sets cache headers on the other files."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the rewritten chunk, or pass the request on."""
        path: str = scope.get("path", "")
        if not path.startswith(("/assets/", "/fonts/")):
            await self._app(scope, receive, send)
            return
        own, lasting = languages.script(BUILT, path)
        if own != path:
            path, scope = own, {**scope, "path": own, "raw_path": own.encode()}
        file = BUILT / path.lstrip("/")
        if _ENVIRONMENT.fullmatch(path) and file.is_file():
            await self._rewritten(file)(scope, receive, send)
            return
        kept = (IMMUTABLE if lasting else _UNSTEADY) if path.startswith("/assets/") else _A_DAY

        async def keep(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in {200, 206, 304}:
                MutableHeaders(scope=message)["Cache-Control"] = kept
            await send(message)

        await self._app(scope, receive, keep)

    def _rewritten(self, file: Path) -> Response:
        text = with_page_url(file.read_text())
        return Response(text, media_type="text/javascript", headers=Headers({"Cache-Control": IMMUTABLE}))
