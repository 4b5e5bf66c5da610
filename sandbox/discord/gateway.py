"""The gateway: sessions, and who hears which event."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sandbox.discord.connection import Connection
from sandbox.discord.limits import Verdict, too_many
from sandbox.discord.rest import answered
from sandbox.discord.session import Session
from sandbox.discord.starts import Starts
from sandbox.faults import SLOW_SECONDS, hang_up

if TYPE_CHECKING:
    from sandbox.discord import Discord

HEARTBEAT_MS = 41_250
WHOLE_GUILD_SECONDS = 30.0
MALFORMED = '{"t":"GUILD_MEMBER_UPDATE","s":'


class Gateway:
    """All sessions of the bot. `heartbeat_ms` is what Hello says to clients that connect from now on."""

    def __init__(self, discord: "Discord") -> None:
        self.discord = discord
        self.heartbeat_ms = HEARTBEAT_MS
        self.sessions: dict[str, Session] = {}
        self.paused_until = 0.0
        self._connections: set[Connection] = set()
        self._whole_guild_asked: dict[str, float] = {}
        self.starts = Starts()
        discord.sandbox.faults.watch("gateway", self._fault_began)

    @property
    def url(self) -> str:
        """Where clients connect; the slash at the end is for clients that append the query to it."""
        return f"ws://localhost:{self.discord.sandbox.port}/discord/gateway/"

    @property
    def fault(self) -> str | None:
        """The gateway's running fault."""
        return self.discord.sandbox.faults.active("gateway")

    def routes(self) -> list[web.RouteDef]:
        """The WebSocket, with and without the slash."""
        return [web.get("/discord/gateway", self._connect), web.get("/discord/gateway/", self._connect)]

    def dispatch(self, guild_id: str, event: str, data: dict[str, Any], intent: int) -> int:
        """Tell every session that has the guild and the intent (0: no intent needed), if the bot is in the guild.

        Returns how many connected clients it was sent to; others find it when they resume.
        """
        guild = self.discord.world.guilds.get(guild_id)
        if guild is None or self.discord.bot_id not in guild.members:
            return 0
        heard = 0
        for session in list(self.sessions.values()):
            if session.expired:
                del self.sessions[session.id]
            elif session.has_guild(guild_id) and (not intent or session.intents & intent):
                session.dispatch(event, data)
                heard += session.connection is not None
        return heard

    def opened(self, session: Session) -> None:
        """A client identified."""
        self.sessions[session.id] = session

    def wait_for_whole_guild(self, guild_id: str) -> float:
        """Seconds until all members of the guild may be asked for again; 0 counts as asking now."""
        now = time.monotonic()
        left = self._whole_guild_asked.get(guild_id, -WHOLE_GUILD_SECONDS) + WHOLE_GUILD_SECONDS - now
        if left > 0:
            return left
        self._whole_guild_asked[guild_id] = now
        return 0.0

    def drop(self) -> None:
        """Cut every connection without a closing frame; sessions can be resumed."""
        for connection in list(self._connections):
            connection.cut()

    def send_malformed(self) -> None:
        """Send every client a frame that is no JSON."""
        for connection in list(self._connections):
            connection.send(MALFORMED)

    def send(self, event: str, data: Any, times: int) -> None:
        """Send every session an event at will, which may be one that no client can read."""
        for session in list(self.sessions.values()):
            for _ in range(times):
                session.dispatch(event, data)

    def pause(self, seconds: float) -> None:
        """Send nothing for so long; events wait."""
        self.paused_until = time.monotonic() + seconds

    def forget_limits(self) -> None:
        """Let members be asked for and clients identify again at once, and end a pause."""
        self.starts.forget()
        self._whole_guild_asked.clear()
        self.paused_until = 0.0

    async def stop(self) -> None:
        """Close every connection so that clients resume or identify elsewhere."""
        for connection in list(self._connections):
            await connection.close(1001)

    def _fault_began(self, kind: str) -> None:
        if kind == "down":
            self.drop()

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        match self.fault:
            case "down":
                return hang_up(request)
            case "429":
                headers = {"Retry-After": "2", "X-RateLimit-Scope": "user"}
                return answered(too_many(Verdict(False, "user", 2.0, headers)), 429, headers)
            case "500":
                return answered({"message": "500: Internal Server Error", "code": 0}, 500)
            case "slow":
                await asyncio.sleep(SLOW_SECONDS)
            case _:
                pass
        connection = Connection(self, request)
        self._connections.add(connection)
        try:
            return await connection.run()
        finally:
            self._connections.discard(connection)
