"""The paths that a sign-in may return to: the screens of the page table and nothing else."""

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from setting_checks import setup_path
from settings import settings

ROUTES = (
    "/", "/login", "/oauth-error", "/dashboard", "/dashboard/server/[server_number]", "/account", "/invite",
    "/server-setup", "/server-config", "/add-verification-rule", "/wallet-verification", "/verification",
    "/features", "/help-center", "/contact", "/status", "/privacy-policy", "/terms-of-service",
    "/test-auth", "/oauth-setup", "/oauth-debug", "/oauth-fix", "/production-setup",
    setup_path(settings().product_name), "/deployment-status", "/replit-deployment",
)  # fmt: skip
"""The page table's routes; a test compares the two. `[name]` matches one segment of the path."""

MEMBERS_ROUTES = ROUTES[ROUTES.index("/dashboard") : ROUTES.index("/features")]
"""Those that only members see; a test compares them with the page table too."""

_LONGEST = 1_000


def _patterns(routes: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(re.sub(r"\\\[\w+\\\]", "[^/]+", re.escape(route))) for route in routes)


_PATTERNS, _MEMBERS_PATTERNS = _patterns(ROUTES), _patterns(MEMBERS_ROUTES)


def is_screen(path: str) -> bool:
    """Return whether a path without a query is a screen; a trailing slash does not matter."""
    return _matches(_PATTERNS, path)


def _matches(patterns: Iterable[re.Pattern[str]], path: str) -> bool:
    plain = path.rstrip("/") or "/"
    return any(pattern.fullmatch(plain) for pattern in patterns)


def checked_return_path(path: str | None) -> str | None:
    """Return the path if it is a screen of ours, without a session parameter; otherwise None.

    Only plain absolute paths of the page table pass. They cannot be read as another host. API calls are refused, so
    that a link cannot end a sign-in with a log-out. Files are refused, because they have no script that removes the
    session from the URL.
    """
    if path is None or len(path) > _LONGEST or not path.isprintable():
        return None
    if not path.startswith("/") or path.startswith("//"):
        return None
    parts = urlsplit(path)
    plain = unquote(parts.path)
    odd = "\\" in path or "\\" in plain or "//" in plain or not plain.isprintable()
    if odd or parts.netloc or {".", ".."} & set(plain.split("/")) or not is_screen(plain):
        return None
    pairs = [(key, value) for key, value in parse_qsl(parts.query, keep_blank_values=True) if key != "session"]
    query = urlencode(pairs, quote_via=quote)
    return quote(plain) + (f"?{query}" if query else "")


def path_of_referrer(referrer: str | None) -> str | None:
    """Return the path and query of a Referer header if it names a screen of ours that only members see.

    A visitor who follows a link to such a screen finds the landing page at its address, and logs in from there.
    """
    public = settings().public_url.rstrip("/")
    if referrer is None or not referrer.startswith(f"{public}/"):
        return None
    path = referrer.removeprefix(public)
    return path if _matches(_MEMBERS_PATTERNS, unquote(urlsplit(path).path)) else None


def with_session(path: str, session_id: str) -> str:
    """Return a checked return path with the session's id for the page."""
    return f"{path}{'&' if '?' in path else '?'}session={session_id}"
