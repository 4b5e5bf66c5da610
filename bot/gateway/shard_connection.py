"""One shard's connection to the gateway: identified or resumed, and reopened when it ends."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Generator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import nextcord
from nextcord.gateway import DiscordWebSocket, ReconnectWebSocket

from services.runtime.database_faults import NOT_DONE, first_line
from services.runtime.retries import backoff
from services.runtime.task_cancellation import outcomes

log = logging.getLogger(f"holdfast.{__name__}")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Pauses in seconds between attempts of a shard that cannot connect."""
LASTED = 5.0
"""Seconds after which a connection counts as working, so that the next one follows at once."""
CONNECTS_WITHIN = 30.0
"""Seconds for a connection to open and receive Discord's hello."""
CLOSES_WITHIN = 1.5
"""Seconds for Discord to confirm that a connection closes."""
RESUMABLE, OVER = 4000, 1000
"""The close codes of a session that is resumed later, and of one that is over (docs/facts.md#discord-gateway)."""
MESSAGE = "message"
"""The kind under which an unreadable message with an unknown event is counted."""

BROKEN = (OSError, TimeoutError, aiohttp.ClientError, nextcord.GatewayNotFound, nextcord.HTTPException)
"""Errors after which a connection can simply be reopened."""


class UnreadableMessage(Exception):
    """The library could not read a message of the gateway."""


class IdentifyLater(Exception):
    """The shard's turn to identify comes in `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"in {seconds:.0f} s")
        self.seconds: float = seconds


class Socket(DiscordWebSocket):
    """The library's socket, which closes if its start fails, and raises UnreadableMessage for unreadable messages."""

    async def identify(self) -> None:
        """Identify, or close the socket, because no other code can close it yet."""
        try:
            await super().identify()
        except BaseException:
            await self.close()
            raise

    async def poll_event(self) -> None:
        """Read a message; close the socket if that fails before Discord's hello."""
        try:
            await super().poll_event()
        except BaseException:
            if self._keep_alive is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CLOSES_WITHIN):
                        await self.socket.close(code=RESUMABLE)
            raise

    async def received_message(self, msg: str | bytes, /) -> None:
        """Read a message. Raises UnreadableMessage, and the exceptions that the library raises on purpose."""
        try:
            await super().received_message(msg)
        except (ReconnectWebSocket, nextcord.ConnectionClosed, *BROKEN):
            raise
        except Exception as fault:
            raise UnreadableMessage(repr(fault)) from fault


@dataclass(slots=True)
class ResumePoint:
    """The position of a session: Discord resumes it after `sequence`, at `url`."""

    session_id: str
    sequence: int
    url: str


@dataclass(slots=True)
class Connection:
    """The connection of a client's shard.

    `allowed` returns when this process may connect the shard; `skipped` counts unreadable messages. `at` is the
    position at which to resume; with None the shard identifies.
    """

    client: Any
    shard_id: int
    allowed: Callable[[], Awaitable[object]]
    may_identify: Callable[[int], Awaitable[object]]
    skipped: Callable[[str, Exception], object]
    at: ResumePoint | None = None
    ws: Socket | None = None
    is_up: bool = False
    """Whether READY or RESUMED has come on the present socket."""
    up_since: float = 0.0
    task: asyncio.Task[None] | None = None
    settling: "tuple[ResumePoint, Collection[asyncio.Task[Any]]] | None" = None
    """A position, and the tasks that handle the events before it."""
    settled: ResumePoint | None = None
    """The last position up to which all events are handled."""
    failures: int = 0
    """Attempts in a row in which no session came up."""
    _unreadable_at: int | None = field(default=None)

    def start(self) -> None:
        """Start the task that connects and stays connected."""
        self.task = asyncio.create_task(self._run(), name=f"shard {self.shard_id}")

    def is_closed(self) -> bool:
        """Return whether there is no open connection."""
        return self.ws is None or not self.ws.open or not self.is_up

    def came_up(self) -> None:
        """Note that Discord has opened or resumed the session, according to its event."""
        assert self.ws is not None
        self.is_up, self.up_since, self.failures = True, asyncio.get_running_loop().time(), 0
        if self.ws.session_id and (self.at is None or self.at.session_id != self.ws.session_id):
            self.at = ResumePoint(self.ws.session_id, self.ws.sequence or 0, str(self.ws.resume_url))

    def position(self) -> ResumePoint | None:
        """Return the session's present position; None if there is no session."""
        if self.at is not None and self.ws is not None and self.is_up and self.ws.sequence is not None:
            self.at.sequence = self.ws.sequence
        return None if self.at is None else ResumePoint(self.at.session_id, self.at.sequence, self.at.url)

    async def stop(self, code: int = RESUMABLE) -> None:
        """Close the connection; with the default code, the session can be resumed."""
        if self.task is not None and self.task is not asyncio.current_task():
            await outcomes(self.task)
        self.position()
        if self.ws is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSES_WITHIN):
                    await self.ws.close(code)
            self.is_up = False

    async def _run(self) -> None:
        pauses = backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            pause = 0.0
            try:
                await self.allowed()
                self.ws = await self._open()
                while True:
                    await self._poll(self.ws)
            except ReconnectWebSocket as again:
                pauses, pause = self._pause(pauses)
                self._ended(resumable=bool(again.resume))
            except IdentifyLater as later:
                pause = later.seconds
            except NOT_DONE as fault:
                # The database counts the identifies. The other shards keep their sessions meanwhile.
                pause = next(pauses)
                log.warning(
                    "database did not answer, shard identifies later shard=%s reason=%s retry_seconds=%.0f",
                    self.shard_id, first_line(fault), pause,
                )  # fmt: skip
            except UnreadableMessage as fault:
                self.skipped(MESSAGE, fault)
                if self.ws is not None and self.ws.session_id and self.at is None:
                    # READY itself is unreadable, and another session would begin in the same way.
                    raise
                pause = next(pauses)
                self._ended(resumable=True)
            except nextcord.ConnectionClosed as closed:
                if closed.code == 4014:
                    raise nextcord.PrivilegedIntentsRequired(self.shard_id) from closed
                if closed.code != 1000:
                    raise
                pause = next(pauses)
                self._ended(resumable=False)
            except BROKEN as fault:
                log.info("shard lost its connection shard=%s reason=%r", self.shard_id, fault)
                pauses, pause = self._pause(pauses)
                self.failures += not self.is_up
                self._ended(resumable=True)
            await asyncio.sleep(pause)

    def _pause(self, pauses: Generator[float]) -> tuple[Generator[float], float]:
        """Return the further pauses and the present one, which is 0 after a connection that lasted."""
        if self.is_up and asyncio.get_running_loop().time() - self.up_since > LASTED:
            return backoff(FIRST_PAUSE, LONGEST_PAUSE), 0.0
        return pauses, next(pauses)

    def _ended(self, *, resumable: bool) -> None:
        self.position()
        if not resumable:
            self.at = self.settled = self.settling = None
        self.is_up, self.ws = False, None

    async def _open(self) -> Socket:
        if (at := self.at) is None:
            await self.may_identify(self.shard_id)
        # The host in the session's own URL may be gone; a session can also be resumed at the usual URL.
        url = at.url if at is not None and self.failures % 2 == 0 else None
        async with asyncio.timeout(CONNECTS_WITHIN):
            if at is None:
                return await Socket.from_client(self.client, shard_id=self.shard_id, initial=True)
            return await Socket.from_client(
                self.client, shard_id=self.shard_id, resume=True, session=at.session_id, sequence=at.sequence,
                gateway=url, format_gateway=True,
            )  # fmt: skip

    async def _poll(self, ws: Socket) -> None:
        """Read one message. An unreadable message is requested again by a resume, and skipped the second time."""
        try:
            await ws.poll_event()
        except UnreadableMessage as fault:
            if not self.is_up or ws.sequence != self._unreadable_at:
                self._unreadable_at = ws.sequence
                if self.is_up:
                    self.skipped(MESSAGE, fault)
                    await ws.close(RESUMABLE)
                    raise ReconnectWebSocket(self.shard_id) from fault
                raise
            self.skipped(MESSAGE, fault)
