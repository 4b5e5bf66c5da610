"""Which limits of `services/runtime/rate_limits.py` each call counts towards."""

import re
from collections.abc import Sequence

from services.runtime.rate_limits import LOOKUPS, PREVIEWS, PROOFS, READS, RECHECKS, WRITES, Limit

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# With any method: these calls ask providers, or take seconds.
COSTLY: Sequence[tuple[re.Pattern[str], Limit]] = (
    (re.compile(r"/api/(?:verify-wallet|wallet-challenge)"), PROOFS),
    (re.compile(r"/api/collection/.*"), LOOKUPS),
    (re.compile(r"/api/discord/roles"), LOOKUPS),
    (
        re.compile(
            r"/api/verification-rules/(?:preview|try|try-call|reach)"
            r"|/api/servers/[^/]+/(?:import|move/preview|migrations(?:/preview|/[^/]+/preview)?|events/[^/]+/undo)"
            r"|/api/me/(?:export|forget)"
        ),
        PREVIEWS,
    ),
    (re.compile(r"/api/servers/[^/]+/(?:(?:members/[^/]+/)?recheck|webhook/test)|/api/admin/sync-servers"), RECHECKS),
)
# Calls that ask Discord whether the caller runs a server; `services/guilds/permissions.py` counts them for the person.
_ABOUT_SERVERS = re.compile(r"/api/(?:servers/.+|verification-rules(?:/.+)?|discord/roles|analytics/history)")


def limits_of_address(method: str, path: str) -> list[Limit]:
    """Return the limits of the caller's address that a call counts towards."""
    found = limits_of(method, path)
    return [READS, *found] if method in _SAFE and _ABOUT_SERVERS.fullmatch(path) else found


def limits_of(method: str, path: str) -> list[Limit]:
    """Return the limits of the person that a call counts towards."""
    found = [limit for pattern, limit in COSTLY if pattern.fullmatch(path)]
    return found if method in _SAFE else [WRITES, *found]
