"""The gate of every socket: limits on how many an address may open, and on what a socket sends, when and how fast."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.caller_address import caller_address, peer
from app.http.sockets.unfinished_messages import Meter, Unfinished
from services.core.errors import TooMany
from services.core.untrusted_json import has_utf_8, is_deeper
from services.runtime import rate_limits, rejected_requests
from settings import settings

FIRST_WORD_SECONDS = 10.0
"""Seconds within which a socket must name its namespace, or be closed."""
LARGEST_MESSAGE = 128 * 1024
"""Characters; `state/core/gate.py` limits the payload of an event to 64 KiB."""
OPENED_A_MINUTE = 10
"""Sockets an address may open in a minute, as a multiple of those open at once: each page load opens one."""
DEEPEST = 32
"""Levels of a message; those of our screens have about six. Libraries behind the gate fail at several hundred, and log
each failure with its trace."""
CHARACTERS_OF_AN_EVENT = 8 * 1024
"""A longer message counts as several events, since each character is read, checked and stored repeatedly."""
BURST_SECONDS = 10.0
"""Events that may come at once, in seconds of the allowed rate."""
ADDRESS_EVENTS = 5
"""Events of all sockets of an address, as a multiple of LIMIT_EVENTS."""
ADDRESS_BURST_SECONDS = 2.0
"""The same burst for an address: other people's events wait behind it."""
MOST_PACES = 10_000
LONGEST_ADDRESS = 4_096
LONGEST_NAME = 300
_SPLAT = "splat"
_POLICY, _TOO_LARGE, _TRY_LATER = 1008, 1009, 1013
# Engine.IO 4: 2 and 3 are ping and pong; 40 connects, 41 disconnects, 42 is an event.
_PONG = frozenset({"2", "3"})
_CONNECT = re.compile(r"40/_event(?:\?[^,]{0,300})?,(.*)", re.S)
_LEAVE = re.compile(r"41(?:/_event)?,?")
_EVENT = re.compile(r'42/_event,(\["(?:event|ping|client_error)".*)', re.S)
_TAB = re.compile(r"[\w-]{1,64}")


class _Refused(Exception):
    """Raised for a socket that sends what our screens never send; has the close code."""

    def __init__(self, reason: str, code: int = _POLICY) -> None:
        super().__init__(reason)
        self.code = code


class _Pace:
    """The rate limit of an address: the monotonic time up to which its messages so far have used its rate."""

    def __init__(self) -> None:
        self.made_up = 0.0

    def ahead(self, now: float, events: float = 1) -> float:
        """Count one more message; return the seconds it must wait, after those already waiting."""
        self.made_up = max(self.made_up, now) + events * rate_limits.MINUTE / (ADDRESS_EVENTS * settings().limit_events)
        return self.made_up - now - ADDRESS_BURST_SECONDS


class SocketGate:
    """Limits sockets by address (LIMIT_SOCKETS), and messages to well-formed ones at the rate of LIMIT_EVENTS.

    `knows` says whether a handler of that name exists. A malformed message closes the socket with a reason. A
    socket that sends too fast is read more slowly, so nothing is lost and nobody else waits. `state.core.gate` checks
    what an event means.
    """

    def __init__(self, app: ASGIApp, knows: Callable[[str], bool]) -> None:
        self._app = app
        self._knows = knows
        self._open: Counter[str] = Counter()
        self._paces: dict[str, _Pace] = {}
        self._unfinished = Unfinished()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; check the messages of a socket."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        address = caller_address(scope)
        try:
            await self._admit(scope, address)
        except _Refused as refused:
            # A socket that is not open yet cannot be given a reason: the server answers 403.
            rejected_requests.count(f"socket not opened: {refused}")
            await receive()
            await send({"type": "websocket.close", "code": refused.code, "reason": str(refused)})
            return
        self._open[address] += 1
        meter = None
        try:
            meter = self._unfinished.open(peer(scope), address)
            listener = _Listener(receive, send, self._knows, self._pace_of(address), meter)
            await self._app(scope, listener.receive, send)
        finally:
            if meter is not None:
                self._unfinished.close(meter)
            self._open[address] -= 1
            if self._open[address] <= 0:
                del self._open[address]

    def _pace_of(self, address: str) -> _Pace:
        if len(self._paces) >= MOST_PACES:
            now = time.monotonic()
            self._paces = {at: pace for at, pace in self._paces.items() if self._open[at] or pace.made_up > now}
        return self._paces.setdefault(address, _Pace())

    async def _admit(self, scope: Scope, address: str) -> None:
        tabs = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        if len(tabs) != 1 or _TAB.fullmatch(tabs[0]) is None:
            raise _Refused("it names no tab")
        if self._open[address] >= settings().limit_sockets:
            raise _Refused("this address has too many sockets", _TRY_LATER)
        try:
            await rate_limits.spend_for_address(rate_limits.SOCKETS, address, share=OPENED_A_MINUTE)
        except TooMany:
            raise _Refused("this address opens sockets too fast", _TRY_LATER) from None


class _Listener:
    """Checks the messages of one socket: well-formed, not too large, not too fast, and the first one soon."""

    def __init__(
        self, receive: Receive, send: Send, knows: Callable[[str], bool], address: _Pace, meter: Meter | None = None
    ) -> None:
        self._receive, self._send, self._knows, self._address = receive, send, knows, address
        self._meter = meter
        self._speaks_by = time.monotonic() + FIRST_WORD_SECONDS
        self._connected = self._closed = False
        self._made_up = 0.0

    async def receive(self) -> Message:
        """Return the next message, or the end of the socket."""
        if self._closed:
            return {"type": "websocket.disconnect", "code": _POLICY}
        try:
            return await self._next()
        except _Refused as refused:
            rejected_requests.count(f"socket closed: {refused}")
            self._closed = True
            await self._send({"type": "websocket.close", "code": refused.code, "reason": str(refused)})
            return {"type": "websocket.disconnect", "code": refused.code, "reason": str(refused)}

    async def _next(self) -> Message:
        patience = None if self._connected else max(0.0, self._speaks_by - time.monotonic())
        try:
            async with asyncio.timeout(patience):
                message = await self._receive()
        except TimeoutError:
            raise _Refused("it said nothing") from None
        if message["type"] == "websocket.receive":
            if self._meter is not None:
                self._meter.deliver(message.get("text") or "")
            text = message.get("text")
            self._check(text)
            await self._pace(max(1, len(text or "") / CHARACTERS_OF_AN_EVENT))
        return message

    def _check(self, text: str | None) -> None:
        if text is None:
            raise _Refused("binary messages are not spoken here")
        if len(text) > LARGEST_MESSAGE:
            raise _Refused("a message was too large", _TOO_LARGE)
        if text in _PONG:
            return
        if _LEAVE.fullmatch(text):
            self._connected, self._speaks_by = False, time.monotonic() + FIRST_WORD_SECONDS
            return
        if found := _CONNECT.fullmatch(text):
            self._connected = True
            _check_greeting(_json(found[1]), self._knows)
            return
        found = _EVENT.fullmatch(text)
        if found is None or not self._connected:
            raise _Refused("a message has a wrong shape")
        said = _json(found[1])
        if not isinstance(said, list) or len(cast("list[Any]", said)) > 2:
            raise _Refused("an event has a wrong shape")
        if said[0] == "event":
            _check_event(cast("list[Any]", said)[1] if len(cast("list[Any]", said)) == 2 else None, self._knows)

    async def _pace(self, events: float) -> None:
        """Wait while this socket or its address is ahead of its rate; meanwhile the network slows its sender."""
        now = time.monotonic()
        self._made_up = max(self._made_up, now) + events * rate_limits.MINUTE / settings().limit_events
        if (ahead := max(self._made_up - now - BURST_SECONDS, self._address.ahead(now, events))) > 0:
            await asyncio.sleep(ahead)


def _json(text: str) -> Any:
    try:
        said = json.loads(text, parse_constant=_no_number) if text else None
    except (ValueError, RecursionError):
        raise _Refused("a message is not JSON") from None
    if text.count("[") + text.count("{") > DEEPEST and is_deeper(said, DEEPEST):
        raise _Refused("a message is nested too deeply")
    return said


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _check_greeting(said: object, knows: Callable[[str], bool]) -> None:
    """Check what comes with the connection: nothing, or the screens' version and the first event."""
    if said is None:
        return
    greeting = _object(said, "the greeting")
    schema = greeting.get("state_schema")
    if not (schema is None or isinstance(schema, str)):
        raise _Refused("the greeting has a wrong shape")
    if greeting.get("event") is not None:
        _check_event(greeting["event"], knows)


def _check_event(said: object, knows: Callable[[str], bool]) -> None:
    """Check an event: it names a handler, its arguments, and the URL of its page."""
    event = _object(said, "an event")
    name = event.get("name")
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise _Refused("an event has no name")
    if not knows(name):
        # Reflex would log the whole message.
        raise _Refused("there is no such handler")
    _object(event.get("payload", {}), "a payload")
    place = _object(event.get("router_data", {}), "a page's address")
    for key in ("pathname", "asPath"):
        text = place.get(key, "")
        _check_place(text)
    for key, value in _object(place.get("query", {}), "a page's address").items():
        _check_place(key)
        # The 404 page sends the segments of an unknown path as a list.
        parts = cast("list[object]", value) if key == _SPLAT and isinstance(value, list) else [value]
        for part in parts:
            _check_place(part)


def _check_place(text: object) -> None:
    """Check that a part of a URL is text that can be sent back (half a surrogate pair cannot)."""
    if not isinstance(text, str) or len(text) > LONGEST_ADDRESS or not has_utf_8(text):
        raise _Refused("a page's address has a wrong shape")


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Refused(f"{what} has a wrong shape")
    return cast("dict[str, Any]", value)
