"""How many requests a provider answers in a period: a window that begins with the first request, as for real keys."""

import math
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Budget:
    """A number of requests per number of seconds; times are monotonic seconds."""

    requests: int
    seconds: float
    left: int = -1
    ends: float = field(default=-math.inf)

    def spend(self) -> bool:
        """Count one request; return False when the window has none left."""
        now = time.monotonic()
        if now >= self.ends:
            self.left, self.ends = self.requests, now + self.seconds
        if self.left < 1:
            return False
        self.left -= 1
        return True

    def set(self, left: int, seconds: float) -> None:
        """Set how many requests are left, and in how many seconds the window ends."""
        self.left, self.ends = left, time.monotonic() + seconds

    @property
    def resets_in(self) -> float:
        """Seconds until the window ends; the full length when none is running."""
        left = self.ends - time.monotonic()
        return left if left > 0 else self.seconds

    def headers(self) -> dict[str, str]:
        """Return the window in the form of OpenSea's headers (docs/facts.md#opensea-keys-and-limits)."""
        return {
            "X-RateLimit-Limit": str(self.requests),
            "X-RateLimit-Remaining": str(max(0, self.left)),
            "X-RateLimit-Reset": str(math.ceil(time.time() + self.resets_in)),
        }

    def view(self) -> dict[str, Any]:
        """Return the window for GET /control/limits."""
        left = self.left if time.monotonic() < self.ends else self.requests
        return {"requests": self.requests, "seconds": self.seconds, "left": left, "resets_in": round(self.resets_in, 3)}
