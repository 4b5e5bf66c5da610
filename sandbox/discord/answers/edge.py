"""Discord's edge, which blocks an address after too many refused requests."""

import math

from aiohttp import web

from sandbox.base.budget import Budget

INVALID, SECONDS = 10_000, 600.0
"""The number of answers of 401, 403 or 429 that blocks the address, and the seconds of the window.

Discord does not publish for how long it blocks; here it is until the window ends
(docs/facts.md#discord-invalid-requests).
"""
REFUSED = frozenset({401, 403, 429})


class Edge:
    """The count of one address, since everything that calls the sandbox is on one machine."""

    def __init__(self) -> None:
        self.invalid: Budget = Budget(INVALID, SECONDS)

    def renew(self) -> None:
        """Forget the refused requests."""
        self.invalid = Budget(INVALID, SECONDS)

    def shut_for(self) -> float:
        """Return the seconds for which the address is blocked; 0 when it is not."""
        return self.invalid.resets_in if self.invalid.view()["left"] == 0 else 0.0

    def note(self, answer: web.StreamResponse) -> None:
        """Count a refusal, except one by a shared limit."""
        if answer.status in REFUSED and answer.headers.get("X-RateLimit-Scope") != "shared":
            self.invalid.spend()

    def refusal(self) -> web.Response:
        """Return the answer to a blocked address. The edge gives it, so Discord's own headers are missing."""
        headers = {"Retry-After": str(math.ceil(self.shut_for())), "Server": "cloudflare"}
        return web.Response(status=429, text="error code: 1015", headers=headers)
