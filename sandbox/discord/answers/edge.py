"""Discord's edge, which blocks an address after too many refused requests."""

import math

from aiohttp import web

from sandbox.base.budget import Budget

INVALID, SECONDS = 10_000, 600.0
"""So many answers of 401, 403 or 429 in a window block the address. Discord does not publish for how long; here it is
until the window ends (docs/facts.md#discord-invalid-requests)."""
REFUSED = frozenset({401, 403, 429})


class Edge:
    """The count of one address, since all that asks the sandbox is on one machine."""

    def __init__(self) -> None:
        self.invalid: Budget = Budget(INVALID, SECONDS)

    def renew(self) -> None:
        """Forget what was refused."""
        self.invalid = Budget(INVALID, SECONDS)

    def shut_for(self) -> float:
        """Seconds for which the address is shut out; 0 when it is not."""
        return self.invalid.resets_in if self.invalid.view()["left"] == 0 else 0.0

    def note(self, answer: web.StreamResponse) -> None:
        """Count a refusal, unless it is by a limit that is shared with others."""
        if answer.status in REFUSED and answer.headers.get("X-RateLimit-Scope") != "shared":
            self.invalid.spend()

    def refusal(self) -> web.Response:
        """The answer to an address that is shut out. The edge gives it, so Discord's own headers are missing."""
        headers = {"Retry-After": str(math.ceil(self.shut_for())), "Server": "cloudflare"}
        return web.Response(status=429, text="error code: 1015", headers=headers)
