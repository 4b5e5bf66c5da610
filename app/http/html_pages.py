"""Serves every screen's HTML: for the audience named by the cookie, with its status and a strict script policy."""

import asyncio
import gzip
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from errno import ENOENT
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http import languages
from app.http.headers import page_policy
from app.http.static_files import BUILT
from locales import _, language
from models import reading
from services.accounts import sessions
from services.runtime.database_faults import NO_ANSWER
from settings import settings

_log = logging.getLogger(__name__)
VISITOR, MEMBER = "visitor", "member"
_PATIENCE = 1.0
"""Seconds that a document waits for the database; without an answer the page is served anyway and says so."""
_FAILED_LOGIN = "auth_failed"
"""The code in the address of the authentication error page that says so; any other one has another cause."""
NOT_DOCUMENTS = ("/api/", "/_", "/assets/", "/fonts/")
NOT_DOCUMENT = frozenset({"/api", "/health", "/ping"})


@dataclass(frozen=True)
class Route:
    """A path of the page table; `[name]` in it matches any one segment."""

    route: str
    visitors_only: bool

    def matches(self, path: str) -> bool:
        """Return whether this route matches a path without trailing slash."""
        return self._pattern.fullmatch(path) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\\\[\w+\\\]", "[^/]+", re.escape(self.route)))


@dataclass
class _Document:
    """A built HTML file, split where the audience is inserted."""

    changed: float
    head: str
    rest: str
    policy: str
    packed: dict[str, bytes] = field(default_factory=dict)


class Documents:
    """Serves the screens' HTML in the reader's language and passes on everything else.

    The server writes the audience it read from the cookie into the document (`data-audience`), so that no audience sees
    the other's screen while scripts load, and a failed login into the authentication error page (`data-error`). For an
    unknown path visitors get the landing page (200) and members the 404 screen (404). While the screens are being built
    every page is a sentence that says so (503).
    """

    def __init__(self, app: ASGIApp, routes: Iterable[Route], redirects: dict[str, str], built: Path = BUILT) -> None:
        self._app = app
        self._routes = tuple(routes)
        self._redirects = redirects
        self._built = built
        self._documents: dict[Path, _Document] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a document, or pass the request on."""
        path: str = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"} or self._is_other(path):
            await self._app(scope, receive, _without_page(send) if scope["type"] == "http" else send)
            return
        plain = path.rstrip("/") or "/"
        if (target := self._redirects.get(plain)) is not None:
            answer: Response = RedirectResponse(target, 302, headers={"Cache-Control": "no-store"})
        elif plain != path:
            # A relative target keeps the host; two slashes at its start would name another one.
            query = scope["query_string"].decode("latin-1")
            answer = RedirectResponse(quote("/" + plain.lstrip("/")) + (f"?{query}" if query else ""), 308)
        else:
            answer = await self._answer(plain, Headers(scope=scope), scope["query_string"].decode("latin-1"))
        await answer(scope, receive, send)

    def _is_other(self, path: str) -> bool:
        """Return whether the path is an API call, a socket or a file."""
        if path.startswith(NOT_DOCUMENTS) or path in NOT_DOCUMENT:
            return True
        wanted = self._file(path)
        return wanted is not None and wanted.suffix != ".html"

    def _file(self, path: str) -> Path | None:
        """Return the built file at this path; None if missing or not a possible name (too long, a null byte)."""
        try:
            wanted = (self._built / path.lstrip("/")).resolve()
            return wanted if wanted.is_file() and wanted.is_relative_to(self._built.resolve()) else None
        except (OSError, ValueError):
            return None

    async def _answer(self, path: str, headers: Headers, query: str) -> Response:
        audience = await _audience(headers)
        route = next((one for one in self._routes if one.matches(path)), None)
        if audience == MEMBER and path == "/login":
            return RedirectResponse("/", 302, headers={"Cache-Control": "no-store"})
        lost = route is None or route.visitors_only
        known = route is not None and self._file(f"{path}/index.html") is not None
        name = f"{path}/index.html".lstrip("/") if known else "404.html"
        try:
            document = self._read(languages.page(self._built, language(), name))
        except (FileNotFoundError, UnicodeDecodeError) as fault:
            # The screens are being built, which removes the former ones first.
            _log.warning("page not served path=%s fault=%s", name, fault)
            said = _("The service restarts. Please try again.")
            return PlainTextResponse(said, 503, headers={"Cache-Control": "no-store", "Retry-After": "5"})
        wanted = {
            "Cache-Control": "private, no-store",
            "Content-Language": language(),
            "Vary": "Cookie, Accept-Language, Accept-Encoding",
            "Content-Security-Policy": document.policy,
        }
        packs = "gzip" in headers.get("accept-encoding", "")
        if packs:
            wanted["Content-Encoding"] = "gzip"
        failed = path == "/oauth-error" and parse_qs(query).get("error") == [_FAILED_LOGIN]
        written = f'data-audience="{audience}"' + (f' data-error="{_FAILED_LOGIN}"' if failed else "")
        body = _body(document, written, packed=packs)
        status = 404 if lost and audience == MEMBER else 200
        return Response(body, status, headers=wanted, media_type="text/html")

    def _read(self, file: Path) -> _Document:
        changed = file.stat().st_mtime
        known = self._documents.get(file)
        if known is not None and known.changed == changed:
            return known
        # Link previews accept only an absolute URL for the picture.
        text = file.read_text().replace('content="/social.png"', f'content="{_site()}/social.png"')
        # The page is readable before its scripts run: on a slow line they must not delay styles and fonts.
        text = text.replace('<link rel="modulepreload"', '<link fetchpriority="low" rel="modulepreload"')
        head, found, rest = text.partition("<html")
        if not rest.rstrip().endswith("</html>"):
            raise FileNotFoundError(ENOENT, "half written", str(file))
        made = _Document(changed, head + found, rest, page_policy(text))
        self._documents[file] = made
        return made


def _without_page(send: Send) -> Send:
    """Answer a missing file with an empty 404: Reflex would send its whole app, without a script policy."""
    lost = False

    async def watch(message: Message) -> None:
        nonlocal lost
        if message["type"] == "http.response.start":
            kind = Headers(raw=message["headers"]).get("content-type", "")
            lost = message["status"] == 404 and kind.startswith("text/html")
            if lost:
                headers = [(b"content-length", b"0"), (b"cache-control", b"no-store")]
                message = {**message, "headers": headers}
        elif lost:
            # The body comes in parts, or is a file that the server sends.
            more = message.get("more_body", False)
            message = {"type": "http.response.body", "body": b"", "more_body": more}
        await send(message)

    return watch


def _site() -> str:
    return settings().public_url.rstrip("/")


async def _audience(headers: Headers) -> str:
    session_id = sessions.session_id_from_cookie_header(headers.get("cookie"))
    if session_id is None:
        return VISITOR
    try:
        async with asyncio.timeout(_PATIENCE), reading() as db:
            return VISITOR if await sessions.actor_of(db, session_id) is None else MEMBER
    except NO_ANSWER as fault:
        # The document contains only the outline of the members' screens; the socket checks who the person is.
        _log.warning("session not read, served as a member's page reason=%s", type(fault).__name__)
        return MEMBER


def _body(document: _Document, written: str, *, packed: bool) -> bytes:
    if packed and written in document.packed:
        return document.packed[written]
    plain = f"{document.head} {written}{document.rest}".encode()
    if not packed:
        return plain
    document.packed[written] = gzip.compress(plain, 6)
    return document.packed[written]
