"""Faults of single routes: a chosen answer, or latency, for the requests that match a method and a path."""

import asyncio
import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from aiohttp import web

from sandbox.base.body import Body, number, optional_text
from sandbox.base.refusal import Refusal

LONGEST_LATENCY_MS = 60_000
_PREFIX = re.compile(r"^/(?:discord/api(?:/v\d+)?|opensea/api/v2|magiceden/v2|[^/]+)")
# What a header's name and value may contain: RFC 9110 sections 5.1 and 5.5
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_FRAMING = ("content-length", "transfer-encoding")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class RouteFault:
    """A fault for the requests of one target that match a method and a path.

    `left` is how many more requests it affects, and `until` is when it ends, in monotonic seconds. `path` is a glob for
    the whole path or for the part below the provider's own address, without the query.
    """

    target: str
    method: str | None
    path: str
    until: float
    left: float = math.inf
    latency: float = 0.0
    """Seconds of delay before the request is passed on."""
    status: int = 0
    """The status of the answer; 0 where the provider itself answers."""
    body: bytes = b""
    headers: Mapping[str, str] | None = None
    carried_out: bool = False
    """Whether the provider carries out the request, and only its answer is lost."""

    def summary(self, now: float) -> str:
        """Return which requests are affected, what happens to them, and for how long."""
        what = f"{self.latency * 1000:.0f} ms later" if not self.status else f"answers {self.status}"
        often = "" if math.isinf(self.left) else f", {self.left:.0f} times"
        ends = "" if math.isinf(self.until) else f", {self.until - now:.0f} s"
        return f"{self.target} {self.method or 'any'} {self.path}: {what}{often}{ends}"

    def fits(self, target: str, request: web.Request) -> bool:
        """Return whether the fault applies to this request."""
        if target != self.target or self.method not in (None, request.method):
            return False
        below = _PREFIX.sub("", request.path)
        return fnmatchcase(request.path, self.path) or fnmatchcase(below, self.path)


class RouteFaults:
    """The faults of all targets, in the order in which they were set.

    The first matching latency and the first matching answer that are not used up act on a request.
    """

    def __init__(self) -> None:
        self._faults: list[RouteFault] = []

    def add(self, target: str, kind: str, body: Body) -> None:
        """Set a fault of kind `answer` or `latency`. Raises Refusal(400)."""
        seconds = number(body, "seconds") if body.get("seconds") is not None else math.inf
        if seconds <= 0:
            raise Refusal(400, "A fault lasts more than 0 seconds.")
        method = optional_text(body, "method")
        fault = RouteFault(
            target, method.upper() if method else None, optional_text(body, "path") or "*", time.monotonic() + seconds
        )
        if body.get("times") is not None:
            fault.left = number(body, "times")
            if fault.left < 1:
                raise Refusal(400, "times is at least 1.")
        if kind == "latency":
            fault.latency = number(body, "ms") / 1000
            if not 0 <= fault.latency <= LONGEST_LATENCY_MS / 1000:
                raise Refusal(400, f"ms is between 0 and {LONGEST_LATENCY_MS}.")
        else:
            _answer(fault, target, body)
        self._faults.append(fault)

    def clear(self) -> None:
        """End every fault."""
        self._faults.clear()

    def running(self) -> list[str]:
        """Return the running faults, each described in a few words for people."""
        now = time.monotonic()
        return [fault.summary(now) for fault in self._faults if fault.until > now and fault.left >= 1]

    async def apply(self, request: web.Request, target: str, handler: Handler) -> web.StreamResponse:
        """Return the answer that the faults give to a request, or pass the request on."""
        if self._faults:
            if (slow := self._take(request, target, answers=False)) is not None:
                await asyncio.sleep(slow.latency)
            if (fault := self._take(request, target, answers=True)) is not None:
                if fault.carried_out:
                    await handler(request)
                return web.Response(status=fault.status, body=fault.body, headers=fault.headers)
        return await handler(request)

    def _take(self, request: web.Request, target: str, *, answers: bool) -> RouteFault | None:
        now = time.monotonic()
        self._faults = [fault for fault in self._faults if fault.until > now and fault.left >= 1]
        for fault in self._faults:
            if (fault.status > 0) is answers and fault.fits(target, request):
                fault.left -= 1
                return fault
        return None


def _answer(fault: RouteFault, target: str, body: Body) -> None:
    status = int(number(body, "status"))
    if not 200 <= status <= 599:
        raise Refusal(400, "status is between 200 and 599.")
    given: Any = body.get("headers") or {}
    if not isinstance(given, dict):
        raise Refusal(400, "headers is an object of texts.")
    headers = {str(name): str(value) for name, value in given.items()}
    if not all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in headers.items()):
        raise Refusal(400, "headers are names and values that HTTP can carry.")
    said: Any = body.get("body")
    kind = "application/json"
    if isinstance(said, str) or said is None:
        fault.body = (said or "").encode()
        kind = "text/html; charset=UTF-8" if fault.body.lstrip().startswith(b"<") else "text/plain; charset=UTF-8"
    else:
        fault.body = json.dumps(said).encode()
        if target == "discord":
            headers.setdefault("Via", "1.1 google")
    if not any(name.lower() == "content-type" for name in headers) and fault.body:
        headers["Content-Type"] = kind
    framing = {(name.lower(), value) for name, value in headers.items() if name.lower() in _FRAMING}
    if framing - {("content-length", str(len(fault.body)))}:
        raise Refusal(400, "Content-Length is the number of the body's bytes, and Transfer-Encoding cannot be chosen.")
    fault.status, fault.headers = status, headers
    fault.carried_out = body.get("carried_out") is True
