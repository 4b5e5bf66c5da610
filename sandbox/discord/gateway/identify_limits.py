"""How often a bot may identify: a number a day, and a number in five seconds (docs/facts.md#discord-gateway)."""

import time

from sandbox.base.refusal import Refusal

DAILY, DAY = 1000, 86_400.0
CONCURRENCY, CONCURRENCY_SECONDS = 1, 5.0


class Starts:
    """The identify calls of the last day. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin a new day with Discord's usual limits."""
        self._used, self._began = 0, 0.0
        self._lately: list[tuple[float, int]] = []
        self.max_concurrency = CONCURRENCY

    def set(self, *, max_concurrency: int | None, left: int | None) -> None:
        """Change the limits, since large bots have other ones. Raises Refusal(400)."""
        if max_concurrency is not None and max_concurrency < 1:
            raise Refusal(400, "max_concurrency is at least 1.")
        if left is not None and not 0 <= left <= DAILY:
            raise Refusal(400, f"identifies_left is between 0 and {DAILY}.")
        self.max_concurrency = max_concurrency or self.max_concurrency
        if left is not None:
            self._day()
            self._used, self._began = DAILY - left, self._began or time.monotonic()

    def view(self) -> dict[str, int]:
        """Return the limits for GET /gateway/bot: `reset_after` in ms, 0 before the first identify of a day."""
        self._day()
        left = self._began + DAY - time.monotonic() if self._used else 0.0
        return {
            "total": DAILY,
            "remaining": max(0, DAILY - self._used),
            "reset_after": int(left * 1000),
            "max_concurrency": self.max_concurrency,
        }

    def used_up(self) -> bool:
        """Return whether one more identify exceeds the day's limit; Discord then resets the token."""
        self._day()
        return self._used >= DAILY

    def take(self, shard: int) -> bool:
        """Count a shard's identify; return False when it comes too soon after the others.

        Shards whose numbers have the same remainder when divided by `max_concurrency` wait for each other. The same
        shard may begin again: a test that raises the limit begins as often as it likes.
        """
        now = time.monotonic()
        self._day()
        self._began = self._began if self._used else now
        self._used += 1
        self._lately = [(at, other) for at, other in self._lately if now - at < CONCURRENCY_SECONDS]
        if len(self._lately) >= self.max_concurrency or any(
            other != shard and (other - shard) % self.max_concurrency == 0 for _, other in self._lately
        ):
            return False
        self._lately.append((now, shard))
        return True

    def _day(self) -> None:
        if self._used and time.monotonic() - self._began >= DAY:
            self._used = 0
