"""The bot with all its listeners and commands."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import nextcord
from nextcord.ext import commands
from nextcord.http import Route

from bot.commands import cogs
from bot.events import Events
from bot.gateway import member_events
from bot.gateway.unreadable_events import UnreadableEvents
from bot.heartbeat import Heartbeat, tell
from bot.interaction import delivery
from bot.interaction.background import Busy
from bot.interaction.presses import Presses
from bot.known_members import KnownMembers
from bot.rereads import Rereads
from gateways import gateways
from models import transaction
from services.guilds.gateway import identifies
from services.runtime.tasks import backoff, stop
from settings import settings

log = logging.getLogger("holdfast.bot")

ENDS_WITHIN = 3.0
"""Seconds that a running event handler has to finish when the bot closes."""
HANDLING = "nextcord: "
"""Prefix of the names of the library's tasks that handle events."""
WAIT_SECONDS = 20.0
"""Seconds between two reports to Health while the bot may not connect."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Pauses in seconds between attempts to register our commands."""


class Bot(commands.AutoShardedBot):
    """The library's bot, which registers its commands until Discord takes them; the library tries once a session."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Each shard starts its own session, and two registrations at once would disturb each other.
        self._rollout: asyncio.Lock = asyncio.Lock()
        self._rollouts = set[asyncio.Task[Any]]()
        library: Any = self.http
        library.request = _in_turn(library.request)
        state: Any = self._connection
        self.unreadable: UnreadableEvents = UnreadableEvents(
            lambda event, data: self.dispatch("unreadable", event, data)
        )
        member_events.replace(state, self.dispatch)
        # The library has no public hook for this, and without it one odd event ends the session.
        self.unreadable.guard(state.parsers)

    @property
    def may_ask_for_members(self) -> bool:
        """Whether the session lacks the intent for members and a new one would get it."""
        known = self.get_cog(KnownMembers.__name__)
        return isinstance(known, KnownMembers) and known.switched_on

    async def start(self, token: str, *, reconnect: bool = True) -> None:
        """Connect as soon as Discord's daily limit of identifies allows it."""
        while (pause := await self._pause()) > 0:
            log.error("identifies exhausted wait_seconds=%.0f", pause)
            await tell(f"Discord allows no more connections for now; the bot connects again in {_minutes(pause)}.")
            await asyncio.sleep(min(pause, WAIT_SECONDS))
        await super().start(token, reconnect=reconnect)

    async def _pause(self) -> float:
        limit = await identifies.starts(gateways())
        async with transaction() as db:
            if limit is not None:
                await identifies.learn(db, limit)
            return await identifies.pause(db)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Count the identify, and wait until it is far enough from the last one of any process."""
        async with transaction() as db:
            wait = await identifies.take(db, shard_id)
        await asyncio.sleep(wait)

    async def close(self) -> None:
        """Close the connection, and wait until background tasks and event handlers have ended, database included.

        Whatever takes longer than ENDS_WITHIN is cancelled.
        """
        # Otherwise a running registration finds the session closed and logs a traceback.
        await stop(*self._rollouts)
        self.unreadable.close()
        left: set[Any] = {task for cog in self.cogs.values() if isinstance(cog, Busy) for task in cog.tasks()}
        await super().close()  # which unloads the cogs, and they cancel their tasks
        left |= {task for task in asyncio.all_tasks() if task.get_name().startswith(HANDLING)}
        left.discard(asyncio.current_task())
        if left:
            _, late = await asyncio.wait(left, timeout=ENDS_WITHIN)
            await stop(*late)

    async def on_connect(self) -> None:
        """Register our commands with Discord, trying again until Discord takes them."""
        task = asyncio.current_task()
        assert task is not None
        self._rollouts.add(task)
        task.add_done_callback(self._rollouts.discard)
        async with self._rollout:
            for pause in backoff(FIRST_PAUSE, LONGEST_PAUSE):
                if self.is_closed():
                    return
                try:
                    await super().on_connect()
                except delivery.Weather as fault:
                    if not delivery.passes(fault):
                        raise
                    log.warning("the commands did not get through (%r), again in %.0f s", fault, pause)
                    await asyncio.sleep(pause)
                else:
                    return


def _minutes(seconds: float) -> str:
    count = max(1, round(seconds / 60))
    return f"{count} minute{'' if count == 1 else 's'}"


def _in_turn(request: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return the library's request function, limited to the requests a second that all our processes share.

    Answers to interactions do not pass through it, and Discord does not count them (docs/facts.md#discord-rate-limits).
    """

    async def asked(*arguments: Any, **options: Any) -> Any:
        await gateways().discord.turn()
        return await request(*arguments, **options)

    return asked


def build(told: bool = True) -> Bot:
    """Return the bot with its cogs; the library needs a running event loop for that.

    `told` asks Discord to report members, which needs the application's Server Members Intent.
    """
    Route.BASE = settings().discord_api_url
    # The bot makes no calls: the library need not warn about its missing voice parts.
    nextcord.VoiceClient.warn_nacl = False
    bot = Bot(
        intents=nextcord.Intents(guilds=True, members=told),
        chunk_guilds_at_startup=False,
        member_cache_flags=nextcord.MemberCacheFlags.none(),
        guild_ready_timeout=0.5,
        allowed_mentions=nextcord.AllowedMentions.none(),
        help_command=None,
    )
    presses = Presses()
    events = Events(bot, told=told)
    heartbeat = Heartbeat(bot, events, bot.unreadable)
    listeners = (events, Rereads(bot, events), KnownMembers(bot, events), heartbeat, presses)
    for cog in (*listeners, *cogs(presses)):
        bot.add_cog(cog)
    return bot
