"""The gateway: sessions, and which session receives which event."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from sandbox.discord.actions import bots
from sandbox.discord.gateway.identify_limits import Starts
from sandbox.discord.gateway.session import INVALID_SESSION, Client, Session, frame
from sandbox.discord.gateway.tampering import Tampering, spoiled
from sandbox.discord.world import intents
from sandbox.discord.world.entities import Guild
from sandbox.discord.world.protocols import Discord

HEARTBEAT_MS = 41_250
WHOLE_GUILD_SECONDS = 30.0
ENDING = frozenset({4003, 4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014})
"""Close codes after which a client has to identify again, if it may at all (docs/facts.md#discord-gateway)."""
MALFORMED = '{"t":"GUILD_MEMBER_UPDATE","s":'


class Gateway:
    """All sessions of the bot. `heartbeat_ms` is the interval in Hello for clients that connect from now on."""

    def __init__(self, discord: Discord) -> None:
        self.discord = discord
        self.heartbeat_ms = HEARTBEAT_MS
        self.sessions: dict[str, Session] = {}
        self.paused_until = 0.0
        self._connections: set[Client] = set()
        self._whole_guild_asked: dict[str, float] = {}
        self.starts = Starts()
        self.tampering = Tampering()
        self._out: dict[str, asyncio.TimerHandle | None] = {}
        discord.sandbox.faults.watch("gateway", self._fault_began)

    @property
    def url(self) -> str:
        """The address where clients connect; the trailing slash is for clients that append the query to it."""
        return f"ws://localhost:{self.discord.sandbox.port}/discord/gateway/"

    @property
    def fault(self) -> str | None:
        """The gateway's running fault."""
        return self.discord.sandbox.faults.active("gateway")

    @contextmanager
    def connected(self, client: Client) -> Generator[None]:
        """Count the client as connected for as long as this lasts."""
        self._connections.add(client)
        try:
            yield
        finally:
            self._connections.discard(client)

    def dispatch(self, guild_id: str, event: str, data: dict[str, Any], intent: int) -> int:
        """Send an event to each session with the guild and the intent (0: none needed), if the bot is in the guild.

        Returns how many connected clients it was sent to; others receive it when they resume.
        """
        guild = self.discord.world.guilds.get(guild_id)
        if guild is None or self.discord.bot_id not in guild.members or self.is_out(guild_id):
            return 0
        if intent == intents.GUILD_MEMBERS and not self.discord.application.enabled & intent:
            return 0
        heard = 0
        tampered = self.tampering.meet(guild_id, event)
        for session in list(self.sessions.values()):
            if session.expired:
                del self.sessions[session.id]
            elif session.has_guild(guild_id) and (not intent or session.intents & intent):
                _tell(session, event, data, tampered)
                heard += session.connection is not None
        return heard

    def introduce(self, session: Session, guild: Guild) -> None:
        """Send a new session a guild that READY listed."""
        data = {**bots.full_guild(self.discord, guild), "unavailable": False}
        _tell(session, "GUILD_CREATE", data, self.tampering.meet(guild.id, "GUILD_CREATE"))

    def send_from_outside(self, guild_id: str, event: str, data: dict[str, Any]) -> None:
        """Send an event to the shard of a guild, which the bot need not be in.

        An event without a guild (id "0") is sent to the first shard.
        """
        for session in list(self.sessions.values()):
            if session.has_guild(guild_id):
                session.dispatch(event, data)

    def opened(self, session: Session) -> None:
        """Add the session of a client that identified."""
        self.sessions[session.id] = session

    def wait_for_whole_guild(self, guild_id: str) -> float:
        """Return the seconds until all members of the guild may be requested again; 0 counts as a request now."""
        now = time.monotonic()
        left = self._whole_guild_asked.get(guild_id, -WHOLE_GUILD_SECONDS) + WHOLE_GUILD_SECONDS - now
        if left > 0:
            return left
        self._whole_guild_asked[guild_id] = now
        return 0.0

    def drop(self) -> None:
        """Cut every connection without a close frame; sessions can be resumed."""
        for connection in list(self._connections):
            connection.cut()

    def send_malformed(self) -> None:
        """Send every client a frame that is not JSON."""
        for connection in list(self._connections):
            connection.send(MALFORMED)

    def send(self, event: str, data: Any, times: int, guild_id: str | None = None) -> None:
        """Send any event to every session (that has the guild), even one that no client can read."""
        for session in list(self.sessions.values()):
            if guild_id is None or session.has_guild(guild_id):
                for _ in range(times):
                    session.dispatch(event, data)

    def send_frame(self, op: int, data: Any) -> None:
        """Send every client a frame of the protocol; an invalid session (op 9) without a resume ends all sessions."""
        for connection in list(self._connections):
            connection.send(frame(op, data))
        if op == INVALID_SESSION and data is not True:
            self.sessions.clear()

    def close(self, code: int) -> None:
        """Close every connection with this code; for some codes Discord also ends the session."""
        if code in ENDING:
            self.sessions.clear()
        for connection in list(self._connections):
            connection.close(code)

    def is_out(self, guild_id: str) -> bool:
        """Return whether the guild is in an outage."""
        return guild_id in self._out

    def begin_outage(self, guild: Guild, seconds: float | None) -> None:
        """Make a guild unavailable for so many seconds or until `end_outage`; nothing there becomes an event."""
        self.end_outage(guild.id, tell=False)
        self.dispatch(guild.id, "GUILD_DELETE", {"id": guild.id, "unavailable": True}, intents.GUILDS)
        later = asyncio.get_running_loop().call_later
        self._out[guild.id] = None if seconds is None else later(seconds, self.end_outage, guild.id)

    def end_outage(self, guild_id: str, *, tell: bool = True) -> None:
        """Make the guild available again; with `tell`, every session that has it receives the guild."""
        timer = self._out.pop(guild_id, None)
        if timer is not None:
            timer.cancel()
        guild = self.discord.world.guilds.get(guild_id)
        if tell and guild is not None and self.discord.bot_id in guild.members:
            data = {**bots.full_guild(self.discord, guild), "unavailable": False}
            self.dispatch(guild_id, "GUILD_CREATE", data, intents.GUILDS)

    def pause(self, seconds: float) -> None:
        """Send nothing for so many seconds; events wait."""
        self.paused_until = time.monotonic() + seconds

    def forget_limits(self) -> None:
        """Lift the limits on requesting members and on identifying, and end pauses, outages and disturbances.

        Events that waited for another are sent now, so that they do not contradict what comes later.
        """
        self.starts.forget()
        self.tampering.clear()
        for session in self.sessions.values():
            for event, data in session.held.release():
                session.dispatch(event, data)
        for guild_id in list(self._out):
            self.end_outage(guild_id)
        self._whole_guild_asked.clear()
        self.paused_until = 0.0

    async def stop(self) -> None:
        """Close every connection so that clients resume or identify elsewhere."""
        for guild_id in list(self._out):
            self.end_outage(guild_id, tell=False)
        await asyncio.gather(*(connection.close(1001) for connection in list(self._connections)))

    def _fault_began(self, kind: str) -> None:
        if kind == "down":
            self.drop()


def _tell(session: Session, event: str, data: Any, tampered: str | None) -> None:
    """Dispatch an event as the disturbance demands, then the events that waited for it."""
    waiting = list(session.held.release())
    match tampered:
        case "lose":
            pass
        case "double":
            session.dispatch(event, data)
            session.dispatch(event, data)
        case "reorder":
            session.held.keep((event, data))
        case "spoil":
            session.dispatch(event, spoiled(data))
        case _:
            session.dispatch(event, data)
    for late, about in waiting:
        session.dispatch(late, about)
