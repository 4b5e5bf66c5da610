"""One WebSocket of the gateway: the protocol between Hello and the close code (facts: Discord's gateway page)."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

from sandbox.base.body import parsed
from sandbox.base.faults import SLOW_SECONDS
from sandbox.base.traffic import NOTED
from sandbox.discord.gateway import chunks, compression
from sandbox.discord.gateway.gateway import ENDING, Gateway
from sandbox.discord.gateway.session import INVALID_SESSION, Session, frame
from sandbox.discord.world import intents, shapes
from sandbox.discord.world.entities import Guild

HEARTBEAT, IDENTIFY, PRESENCE, VOICE, RESUME, REQUEST_MEMBERS, SOUNDBOARD = 1, 2, 3, 4, 6, 8, 31
HELLO, HEARTBEAT_ACK = 10, 11
LONGEST_FRAME = 4096
"""The most bytes of a frame of a client."""
MOST_FRAMES, FRAMES_SECONDS = 120, 60.0
PATIENCE = 1.5
CLOSES_WITHIN = 2.0
ROUND_TRIP = 0.04
"""Seconds before a heartbeat is answered.

Some clients note the time of sending after they have sent, and no network brings an answer before that.
"""


class Closing(Exception):
    """The connection ends with this close code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Connection:
    """A client on the gateway, from upgrade to close."""

    def __init__(self, gateway: Gateway, request: web.Request) -> None:
        self.gateway = gateway
        self._request = request
        self._socket = web.WebSocketResponse(max_msg_size=0, autoping=True, timeout=CLOSES_WITHIN)
        self._outgoing: asyncio.Queue[tuple[float, str]] = asyncio.Queue()
        self._packer = compression.packer(request.query.get("compress", ""))
        self._session: Session | None = None
        self._received: deque[float] = deque()
        self._beat_by = 0.0
        self._closing: asyncio.Task[bool] | None = None

    def send(self, text: str, after: float = 0.0) -> None:
        """Queue a frame, to be sent no sooner than after so many seconds."""
        delay = SLOW_SECONDS if self.gateway.fault == "slow" else after
        self._outgoing.put_nowait((time.monotonic() + delay, text))

    def cut(self) -> None:
        """Close the TCP connection without a close frame."""
        if self._request.transport is not None:
            self._request.transport.abort()

    def close(self, code: int, reason: str = "") -> asyncio.Task[bool]:
        """Close with a code; the task is done when the client has answered, or when too much time has passed."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._socket.close(code=code, message=reason.encode()))
        return self._closing

    async def run(self) -> web.WebSocketResponse:
        """Serve the client until either side ends the connection."""
        await self._socket.prepare(self._request)
        traffic = self.gateway.discord.sandbox.traffic
        traffic.note("gateway", "GET", self._request.path_qs, 101)
        self._request[NOTED] = True
        writer = asyncio.create_task(self._write())
        try:
            await self._talk()
        except Closing as closing:
            if closing.code in ENDING and self._session is not None:
                self.gateway.sessions.pop(self._session.id, None)
            await self._flush()
            self.close(closing.code, str(closing))
        finally:
            if self._closing is not None:
                # Returning from here ends the connection, perhaps before the close frame is sent.
                await asyncio.wait({self._closing})
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            self._left()
        return self._socket

    def _left(self) -> None:
        if self._session is None:
            return
        self._session.leave(self)
        # A client that closes with one of these codes gives up its session; after our own close it merely answers.
        if self._closing is None and self._socket.close_code in (1000, 1001):
            self.gateway.sessions.pop(self._session.id, None)

    async def _write(self) -> None:
        while True:
            not_before, text = await self._outgoing.get()
            while (wait := max(not_before, self.gateway.paused_until) - time.monotonic()) > 0:
                await asyncio.sleep(min(wait, 0.2))
            try:
                await self._put(text)
            except (ConnectionError, RuntimeError):
                return

    async def _put(self, text: str) -> None:
        if self.gateway.fault == "malformed":
            text = text[: len(text) // 2]
        if self._packer is None:
            await self._socket.send_str(text)
        else:
            await self._socket.send_bytes(self._packer.pack(text))

    async def _flush(self) -> None:
        deadline = time.monotonic() + 1
        while not self._outgoing.empty() and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    async def _talk(self) -> None:
        query = self._request.query
        if query.get("v", "10") not in ("9", "10"):
            raise Closing(4012, "Invalid API version specified.")
        if query.get("encoding", "json") != "json" or query.get("compress", compression.ZLIB) not in compression.KINDS:
            raise Closing(4002, "This gateway speaks JSON, plain, zlib-stream or zstd-stream.")
        interval = self.gateway.heartbeat_ms
        self._beat_by = time.monotonic() + interval / 1000 * PATIENCE
        self.send(frame(HELLO, {"heartbeat_interval": interval}))
        while True:
            try:
                message = await self._socket.receive(timeout=max(0.001, self._beat_by - time.monotonic()))
            except TimeoutError:
                raise Closing(4009, "Session timed out.") from None
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return
            if time.monotonic() > self._beat_by:
                raise Closing(4009, "Session timed out.")
            self._count()
            await self._handle(_decoded(message.data))

    def _count(self) -> None:
        now = time.monotonic()
        self._received.append(now)
        while now - self._received[0] > FRAMES_SECONDS:
            self._received.popleft()
        if len(self._received) > MOST_FRAMES:
            raise Closing(4008, "You are being rate limited.")

    async def _handle(self, payload: dict[str, Any]) -> None:
        op, data = payload.get("op"), payload.get("d")
        if op == HEARTBEAT:
            self._beat_by = time.monotonic() + self.gateway.heartbeat_ms / 1000 * PATIENCE
            self.send(frame(HEARTBEAT_ACK, None), ROUND_TRIP)
        elif op in (IDENTIFY, RESUME):
            if self._session is not None:
                raise Closing(4005, "Already authenticated.")
            if not isinstance(data, dict):
                raise Closing(4002, "Error while decoding payload.")
            self._check_token(data.get("token"))
            start: Callable[[dict[str, Any]], None] = self._identify if op == IDENTIFY else self._resume
            start(data)
        elif op not in (PRESENCE, VOICE, REQUEST_MEMBERS, SOUNDBOARD):
            raise Closing(4001, "Unknown opcode.")
        elif self._session is None:
            raise Closing(4003, "Not authenticated.")
        elif op == REQUEST_MEMBERS:
            if not isinstance(data, dict):
                raise Closing(4002, "Error while decoding payload.")
            try:
                chunks.answer(self.gateway, self._session, data)
            except (LookupError, TypeError, ValueError):
                raise Closing(4002, "Error while decoding payload.") from None

    def _check_token(self, token: Any) -> None:
        if not isinstance(token, str) or not self.gateway.discord.is_bots(token.removeprefix("Bot ")):
            raise Closing(4004, "Authentication failed.")

    def _identify(self, data: dict[str, Any]) -> None:
        if not isinstance(data.get("properties"), dict):
            # Discord calls this an invalid payload for an opcode (docs/facts.md#discord-gateway).
            raise Closing(4001, "Unknown opcode.")
        wanted = data.get("intents")
        if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 0 or wanted & ~intents.KNOWN:
            raise Closing(4013, "Invalid intent(s).")
        if wanted & intents.PRIVILEGED & ~self.gateway.discord.application.enabled:
            raise Closing(4014, "Disallowed intent(s).")
        session = Session(wanted, _shard(data.get("shard")))
        if len(self._guilds(session)) > self.gateway.discord.application.guilds_per_shard:
            raise Closing(4011, "Sharding required.")
        if self.gateway.starts.used_up():
            # Discord resets the token of a bot that continues, so from then on the token is unknown.
            raise Closing(4004, "Authentication failed.")
        if not self.gateway.starts.take(session.shard[0]):
            self.send(frame(INVALID_SESSION, False))
            return
        self._take(session)
        self.gateway.opened(session)
        discord = self.gateway.discord
        bot = discord.world.users[discord.bot_id]
        guilds = [] if self.gateway.fault == "empty" else self._guilds(session)
        session.dispatch(
            "READY",
            {
                "v": 10,
                "user": shapes.me(bot),
                "guilds": [{"id": guild.id, "unavailable": True} for guild in guilds],
                "session_id": session.id,
                "resume_gateway_url": self.gateway.url,
                "session_type": "normal",
                "shard": list(session.shard),
                "application": shapes.own_application(bot.id, discord.application.flags),
                "private_channels": [],
                "relationships": [],
                "presences": [],
                "user_settings": {},
                "geo_ordered_rtc_regions": [],
            },
        )
        if wanted & intents.GUILDS:
            for guild in guilds:
                if self.gateway.is_out(guild.id):
                    continue
                self.gateway.introduce(session, guild)

    def _guilds(self, session: Session) -> list[Guild]:
        discord = self.gateway.discord
        return [g for g in discord.world.guilds.values() if discord.bot_id in g.members and session.has_guild(g.id)]

    def _resume(self, data: dict[str, Any]) -> None:
        session = self.gateway.sessions.get(str(data.get("session_id")))
        sequence = data.get("seq")
        if not isinstance(sequence, int):
            raise Closing(4007, "Invalid seq.")
        if session is None or session.expired:
            self.send(frame(INVALID_SESSION, False))
            return
        if sequence > session.sequence:
            del self.gateway.sessions[session.id]
            raise Closing(4007, "Invalid seq.")
        missed = session.missed(sequence)
        if missed is None:
            del self.gateway.sessions[session.id]
            self.send(frame(INVALID_SESSION, False))
            return
        if session.connection is not None:
            session.connection.cut()
        for text in missed:
            self.send(text)
        self._take(session)
        session.dispatch("RESUMED", {})

    def _take(self, session: Session) -> None:
        self._session, session.connection, session.left_at = session, self, None


def _shard(value: Any) -> tuple[int, int]:
    match value:
        case None:
            return 0, 1
        case [int(number), int(shards)] if 0 <= number < shards:
            return number, shards
        case _:
            raise Closing(4010, "Invalid shard.")


def _decoded(data: str | bytes) -> dict[str, Any]:
    content = data.encode() if isinstance(data, str) else data
    if len(content) > LONGEST_FRAME:
        raise Closing(4002, "Error while decoding payload.")
    try:
        payload = parsed(content)
    except ValueError:
        raise Closing(4002, "Error while decoding payload.") from None
    if not isinstance(payload, dict) or isinstance(payload.get("op"), bool | float):
        raise Closing(4002, "Error while decoding payload.")
    return payload
