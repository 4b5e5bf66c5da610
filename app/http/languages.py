"""Reads texts in the language that a browser asks for, and finds the built screens in it."""

import asyncio
import logging
import re
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from app.http.middleware import HttpMiddleware
from app.http.origins import asked_for_by_us
from locales import LANGUAGES, browser_language, screens, speaking
from models import transaction
from services.accounts import sessions, users
from services.runtime.database_faults import NO_ANSWER
from setting_checks import is_readable
from settings import settings

_PATIENCE = 1.0
"""Seconds that a choice waits for the database; without an answer it is stored in the browser alone."""
_A_YEAR = 365 * 24 * 60 * 60
_log = logging.getLogger(__name__)
_FILE = re.compile(r"[\w.-]+", re.ASCII)


class Languages(HttpMiddleware):
    """Runs each request in the language of its cookie, otherwise in that of its `Accept-Language` header.

    `/language/<language>` stores a choice in a cookie and, for a signed-in person, in the account.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        headers = Headers(scope=scope)
        chosen = scope["path"].removeprefix(browser_language.CHOICE_PATH)
        if scope["method"] == "GET" and scope["path"] == browser_language.CHOICE_PATH + chosen and chosen in LANGUAGES:
            await (await _choose(chosen, headers))(scope, receive, send)
            return
        with of_request(headers):
            await self._app(scope, receive, send)


def of_request(headers: Headers) -> AbstractContextManager[None]:
    """Read texts in the language that a request asks for, in middleware that answers before `Languages` runs."""
    return speaking(browser_language.asked_for(headers.get("cookie"), headers.get("accept-language")))


async def _choose(language: str, headers: Headers) -> Response:
    """Redirect to the page on which the language was chosen; a choice that another site made is not stored."""
    answer = RedirectResponse(_page_of_the_choice(headers), 303, headers={"Cache-Control": "no-store"})
    if asked_for_by_us(headers):
        set_cookie(answer, language)
        try:
            async with asyncio.timeout(_PATIENCE), transaction() as db:
                actor = await sessions.actor_of(db, sessions.session_id_from_cookie_header(headers.get("cookie")))
                if actor is not None:
                    await users.choose_language(db, actor.user_id, language)
        except NO_ANSWER as fault:
            _log.warning("language not stored with the account reason=%s", type(fault).__name__)
    return answer


def set_cookie(answer: Response, language: str) -> None:
    """Store a language in the browser."""
    answer.set_cookie(
        browser_language.COOKIE,
        language,
        max_age=_A_YEAR,
        path="/",
        secure=settings().https,
        httponly=True,
        samesite="lax",
    )


def _page_of_the_choice(headers: Headers) -> str:
    """Return the path and query of the page in `Referer` if it is ours, without a session id; otherwise the start."""
    referrer = headers.get("referer") or ""
    public = settings().public_url.rstrip("/")
    if not referrer.startswith(f"{public}/"):
        return "/"
    # A relative target keeps the host; two slashes at its start would name another one.
    rest = referrer.removeprefix(public).lstrip("/")
    if not is_readable(rest):
        return "/"
    page = urlsplit(rest)
    query = [pair for pair in parse_qsl(page.query, keep_blank_values=True) if pair[0] != "session"]
    return f"/{page.path.lstrip('/')}" + (f"?{urlencode(query)}" if query else "")


def page(built: Path, language: str, name: str) -> Path:
    """Return the file of a page in a language, or the English one where the screens were built without it."""
    translated = screens.pages_of(built, language) / name
    return translated if translated.is_file() else built / name


@lru_cache(maxsize=4096)
def script(built: Path, path: str) -> tuple[str, bool]:
    """Return the path at which a file of `/assets/` is stored, and whether the given path always has this content.

    A page names all its scripts in the folder of its language, but a script without texts has one file for every
    language. A page that was open when the texts changed names a folder that no longer exists.
    """
    tag, _, name = path.removeprefix("/assets/").partition("/")
    language = screens.language_of_tag(tag) if _FILE.fullmatch(name) else None
    if language is None:
        return path, True
    present = next((one.name for one in sorted((built / "assets").glob(f"{language}-????????"))), tag)
    own = f"/assets/{present}/{name}"
    return own if (built / own.lstrip("/")).is_file() else f"/assets/{name}", present == tag
