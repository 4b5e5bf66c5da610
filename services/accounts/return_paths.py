"""The paths that a sign-in may return to: the screens of the page table and nothing else."""

import re

from settings import settings

ROUTES = (
    "/", "/login", "/oauth-error", "/dashboard", "/dashboard/server/[server_number]", "/account", "/invite",
    "/server-setup", "/server-config", "/add-verification-rule", "/wallet-verification", "/verification",
    "/features", "/help-center", "/contact", "/status", "/privacy-policy", "/terms-of-service",
    "/test-auth", "/oauth-setup", "/oauth-debug", "/oauth-fix", "/production-setup",
    f"/{settings().product_name.lower().replace(' ', '-')}-setup", "/deployment-status", "/replit-deployment",
)  # fmt: skip
"""The page table's routes; a test compares the two. `[name]` matches one segment of the path."""

_PATTERNS = tuple(re.compile(re.sub(r"\\\[\w+\\\]", "[^/]+", re.escape(route))) for route in ROUTES)


def is_screen(path: str) -> bool:
    """Return whether a path without a query is a screen; a trailing slash does not matter."""
    plain = path.rstrip("/") or "/"
    return any(pattern.fullmatch(plain) for pattern in _PATTERNS)
