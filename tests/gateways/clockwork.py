"""An event loop whose clock jumps to the next timer, and a Discord that runs on that clock."""

import asyncio
import selectors
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import httpx


class _JumpingSelector(selectors.DefaultSelector):
    loop: "JumpingLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self.loop.moment += timeout
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop that never waits: sleeping only advances its clock."""

    def __init__(self) -> None:
        self.moment = 1000.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.moment


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to completion on a jumping clock."""
    loop = JumpingLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


class TickingDiscord(httpx.AsyncBaseTransport):
    """Answers role writes with Discord's headers: one bucket name, counted for each guild, and a global rate."""

    def __init__(self, *, limit: int = 10, window: float = 10.0, per_second: int = 50, latency: float = 0.04) -> None:
        self.limit, self.window, self.per_second, self.latency = limit, window, per_second, latency
        self.windows: dict[str, tuple[float, int]] = {}
        self.seconds: Counter[int] = Counter()
        self.admitted: list[float] = []
        self.too_many = 0
        self.sent = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        # Requests and answers take different times, so that they overtake one another.
        await asyncio.sleep(self.latency * (0.7 + 0.3 * (self.sent % 3)))
        guild = request.url.path.split("/guilds/")[1].split("/")[0]
        answer = self._answer(guild, asyncio.get_running_loop().time())
        await asyncio.sleep(self.latency * (0.7 + 0.3 * (self.sent % 2)))
        return answer

    def _answer(self, guild: str, now: float) -> httpx.Response:
        second = int(now)
        ends, used = self.windows.get(guild, (0.0, 0))
        if now >= ends:
            ends, used = now + self.window, 0
        if self.seconds[second] >= self.per_second:
            self.too_many += 1
            wait = second + 1 - now
            headers = {"X-RateLimit-Scope": "global", "X-RateLimit-Global": "true", "Via": "1.1 google"}
            return httpx.Response(429, headers=headers, json={"message": "", "retry_after": wait, "global": True})
        self.seconds[second] += 1
        headers = {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(max(0, self.limit - used - 1)),
            "X-RateLimit-Reset-After": f"{ends - now:.3f}",
            "X-RateLimit-Bucket": "one-for-all",
        }
        if used >= self.limit:
            self.too_many += 1
            headers |= {"X-RateLimit-Scope": "user", "Via": "1.1 google"}
            body = {"message": "", "retry_after": ends - now, "global": False}
            return httpx.Response(429, headers=headers, json=body)
        self.windows[guild] = (ends, used + 1)
        self.admitted.append(now)
        return httpx.Response(204, headers=headers)
