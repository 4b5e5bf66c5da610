"""The log of every request that reached a provider, so that a check can count calls instead of trusting claims."""

import re
from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from aiohttp import web

from sandbox.base.journal import Journal

KEPT = 200_000

# Set by handlers for the server's log: that they noted the request themselves, its RPC method, that no answer was sent.
NOTED = web.RequestKey("noted", bool)
RPC_METHOD = web.RequestKey("rpc_method", str)
HUNG_UP = web.RequestKey("hung_up", bool)

_SECRET_QUERY = re.compile(
    r"(?<=[?&])(code|state|token|access_token|refresh_token|session|api[-_]?key|key)=[^&]*", re.IGNORECASE
)
_TOKEN_IN_PATH = re.compile(r"(/interactions/\d+/|/webhooks/\d+/)[^/?]+")


@dataclass(slots=True)
class Note:
    """One request: when it came, to which target, and how many bytes were sent back.

    Status 0 means no answer: the connection was closed without one, or the answer is still pending.
    """

    n: int
    time: str
    target: str
    method: str
    path: str
    status: int
    rpc_method: str | None
    bytes: int


class Traffic:
    """The last 200,000 requests, numbered from 1 without gaps.

    They survive a kill, since a check that spans one would otherwise miss some. They are kept in memory alone until
    `keep_in` names their file.
    """

    def __init__(self) -> None:
        self._notes: deque[Note] = deque(maxlen=KEPT)
        self._next = 1
        self._lines = 0
        self._journal: Journal | None = None

    def keep_in(self, path: Path) -> None:
        """Read the file, and write to it from now on; no other process may have it open."""
        self._journal = Journal(path)
        for record in self._journal.records():
            if "target" in record:
                self._notes.append(Note(**record))
                self._next = record["n"] + 1
            else:
                self._change(**record)
        self._compact()

    def note(
        self, target: str, method: str, path: str, status: int, rpc_method: str | None = None, bytes: int = 0
    ) -> int:
        """Record a request and return its number."""
        now = datetime.now(UTC).isoformat()
        note = Note(self._next, now, target, method, redacted(path), status, rpc_method, bytes)
        self._notes.append(note)
        self._next += 1
        self._write(asdict(note))
        return note.n

    def answered(self, n: int, status: int, bytes: int) -> None:
        """Record the answer to a request that was recorded when it came."""
        self._change(n, status, bytes)
        self._write({"n": n, "status": status, "bytes": bytes})

    def _change(self, n: int, status: int, bytes: int) -> None:
        first = self._notes[0].n if self._notes else self._next
        if first <= n < self._next:
            note = self._notes[n - first]
            note.status, note.bytes = status, bytes

    def _write(self, record: dict[str, Any]) -> None:
        if self._journal is not None:
            self._journal.append(record)
            self._lines += 1
            if self._lines > 2 * KEPT:
                self._compact()

    def _compact(self) -> None:
        if self._journal is not None:
            self._journal.rewrite([asdict(note) for note in self._notes])
            self._lines = len(self._notes)

    def since(self, n: int) -> dict[str, Any]:
        """Return `{next, requests}` with the requests numbered `n` and later; pass `next` to continue."""
        # Indexing would walk the deque once for each note.
        return {"next": self._next, "requests": self.newest(max(0, self._next - n))[::-1]}

    def newest(self, count: int) -> list[dict[str, Any]]:
        """Return the last requests, newest first."""
        return [_shown(note) for note in islice(reversed(self._notes), count)]


def redacted(path: str) -> str:
    """Return the path and its query without codes, tokens and keys."""
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
