"""A gateway session: the state that outlives one connection, so that a client can resume."""

import asyncio
import json
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol

from sandbox.discord.gateway.tampering import Held

BUFFERED = 10_000
RESUMABLE_SECONDS = 600.0
INVALID_SESSION = 9


def frame(op: int, data: Any, sequence: int | None = None, event: str | None = None) -> str:
    """Return a gateway frame; every frame has all four keys."""
    return json.dumps({"t": event, "s": sequence, "op": op, "d": data}, separators=(",", ":"))


class Client(Protocol):
    """The connection of a session's client."""

    def send(self, text: str, after: float = 0.0) -> None:
        """Queue a frame, to be sent no sooner than after so many seconds."""
        ...

    def cut(self) -> None:
        """Close the TCP connection without a close frame."""
        ...

    def close(self, code: int) -> asyncio.Task[bool]:
        """Close with a code; the task is done when the client has answered, or when too much time has passed."""
        ...


@dataclass
class Session:
    """One identified client: its shard, its intents, and the events that it may request again."""

    intents: int
    shard: tuple[int, int]
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    sequence: int = 0
    buffer: "deque[tuple[int, str]]" = field(default_factory=lambda: deque(maxlen=BUFFERED))
    connection: Client | None = None
    left_at: float | None = None
    held: Held = field(default_factory=Held)

    def has_guild(self, guild_id: str) -> bool:
        """Return whether the guild belongs to this session's shard."""
        number, shards = self.shard
        return (int(guild_id) >> 22) % shards == number

    def dispatch(self, event: str, data: Any) -> None:
        """Send an event to the client if it is connected, and keep it for a resume."""
        self.sequence += 1
        text = frame(0, data, self.sequence, event)
        self.buffer.append((self.sequence, text))
        if self.connection is not None:
            self.connection.send(text)

    def missed(self, sequence: int) -> list[str] | None:
        """Return the frames after `sequence`; None when some of them are no longer kept."""
        if self.buffer and self.buffer[0][0] > sequence + 1:
            return None
        return [text for number, text in self.buffer if number > sequence]

    def leave(self, connection: Client) -> None:
        """Mark the connection as gone; the session waits for a resume."""
        if self.connection is connection:
            self.connection = None
            self.left_at = time.monotonic()

    @property
    def expired(self) -> bool:
        """Whether no client resumed in time."""
        return self.left_at is not None and time.monotonic() - self.left_at > RESUMABLE_SECONDS
