"""The log of every request that reached a provider, so that a check can count calls instead of trusting claims."""

import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

KEPT = 200_000

# What handlers tell the server's logging: "I noted this request myself", its RPC method, "there was no answer".
NOTED = web.RequestKey("noted", bool)
RPC_METHOD = web.RequestKey("rpc_method", str)
HUNG_UP = web.RequestKey("hung_up", bool)

_SECRET_QUERY = re.compile(
    r"(?<=[?&])(code|state|token|access_token|refresh_token|session|api[-_]?key|key)=[^&]*", re.IGNORECASE
)
_TOKEN_IN_PATH = re.compile(r"(/interactions/\d+/|/webhooks/\d+/)[^/?]+")


@dataclass(frozen=True, slots=True)
class Note:
    """One request: when it was answered, to which target, and how many bytes went back."""

    n: int
    time: str
    target: str
    method: str
    path: str
    status: int
    rpc_method: str | None
    bytes: int


class Traffic:
    """The last 200,000 requests, numbered from 1 without gaps since this process started."""

    def __init__(self) -> None:
        self._notes: deque[Note] = deque(maxlen=KEPT)
        self._next = 1

    def note(
        self, target: str, method: str, path: str, status: int, rpc_method: str | None = None, bytes: int = 0
    ) -> None:
        """Remember a request; status 0 means that the connection was closed without an answer."""
        now = datetime.now(UTC).isoformat()
        self._notes.append(Note(self._next, now, target, method, redacted(path), status, rpc_method, bytes))
        self._next += 1

    def since(self, n: int) -> dict[str, Any]:
        """`{next, requests}` with the requests numbered `n` and later; ask again with `next`."""
        first = self._notes[0].n if self._notes else self._next
        chosen = [self._notes[at] for at in range(max(0, n - first), len(self._notes))]
        return {"next": self._next, "requests": [_shown(note) for note in chosen]}


def redacted(path: str) -> str:
    """The path with its query, without codes, tokens and keys."""
    return _TOKEN_IN_PATH.sub(r"\1…", _SECRET_QUERY.sub(r"\1=…", path))


def _shown(note: Note) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "n": note.n,
        "time": note.time,
        "target": note.target,
        "method": note.method,
        "path": note.path,
        "status": note.status,
        "bytes": note.bytes,
    }
    if note.rpc_method is not None:
        shown["rpc_method"] = note.rpc_method
    return shown
