"""What each call counts as, for the limits of `services/runtime/rate_limits.py`."""

import re
from collections.abc import Sequence

from services.runtime.rate_limits import LOOKUPS, PREVIEWS, PROOFS, READS, RECHECKS, WRITES, Limit

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# Whatever the method: these ask providers, or work for seconds.
COSTLY: Sequence[tuple[re.Pattern[str], Limit]] = (
    (re.compile(r"/api/(?:verify-wallet|wallet-challenge)"), PROOFS),
    (re.compile(r"/api/collection/.*"), LOOKUPS),
    (re.compile(r"/api/discord/roles"), LOOKUPS),
    (re.compile(r"/api/verification-rules/(?:preview|try|try-call)"), PREVIEWS),
    (re.compile(r"/api/servers/[^/]+/(?:members/[^/]+/)?recheck|/api/admin/sync-servers"), RECHECKS),
)
# What asks Discord whether the caller runs a server; `services/guilds/permissions.py` counts it for the person.
_ABOUT_SERVERS = re.compile(r"/api/(?:servers/.+|verification-rules(?:/.+)?|discord/roles|analytics/history)")


def limits_of_address(method: str, path: str) -> list[Limit]:
    """Return what one call counts as, for the address that it comes from."""
    found = limits_of(method, path)
    return [READS, *found] if method in _SAFE and _ABOUT_SERVERS.fullmatch(path) else found


def limits_of(method: str, path: str) -> list[Limit]:
    """What one call counts as, for the person who makes it."""
    found = [limit for pattern, limit in COSTLY if pattern.fullmatch(path)]
    return found if method in _SAFE else [WRITES, *found]
