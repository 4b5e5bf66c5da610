"""The bot with all its listeners and commands."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import nextcord
from nextcord.ext import commands
from nextcord.http import Route

from bot.commands import cogs
from bot.events import Events
from bot.gateway import member_event_parsers
from bot.gateway.shard_connection import IdentifyLater
from bot.gateway.shard_keeper import ShardKeeper
from bot.gateway.unreadable_events import UnreadableEvents
from bot.heartbeat import Heartbeat, tell
from bot.interaction import delivery
from bot.interaction.answering import answer_own_fault
from bot.interaction.background import BackgroundCog
from bot.interaction.delivery import Interaction
from bot.interaction.interaction_claims import Claims
from bot.interaction.presses import Presses
from bot.member_reader import MemberReader
from bot.unreadable_event_rereads import UnreadableEventRereads
from gateways import gateways
from locales.stored_texts import storable_count
from models import transaction
from services.guilds.gateway import identifies, shards
from services.runtime.retries import backoff
from services.runtime.task_cancellation import stop
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

ENDS_WITHIN, ANSWERS_WITHIN, TOLD_WITHIN = 3.0, 2.5, 1.5
"""When the bot closes: seconds for running event handlers to finish, and before that for answers that have begun, and
to tell people that their background checks end."""
HANDLING = "nextcord: "
"""Prefix of the names of the library's tasks that handle events."""
READY, RESUMED, INTERACTION = "READY", "RESUMED", "INTERACTION_CREATE"
NOT_REPEATED = ("interaction", "application_command")
"""Parts of the names of tasks that answer interactions."""
LONGEST_HELD_SECONDS, TURN_KEPT_SECONDS = 10.0, 30.0
"""Seconds for which an open connection waits for its turn to identify, and for which a turn is kept once it comes."""
PROCESS = shards.this_process()
WAIT_SECONDS = 20.0
"""Seconds between two reports to Health while the bot may not connect."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Pauses in seconds between attempts to register our commands."""


class Bot(commands.AutoShardedBot):
    """The library's bot. It tries to register its commands until Discord accepts them; the library tries only once."""

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
        member_event_parsers.replace(state, self.dispatch)
        # The library has no public hook for this, and without it one odd event ends the session.
        self.unreadable.guard(state.parsers)
        for event in (READY, RESUMED):
            state.parsers[event] = self._opening(event, state.parsers[event])
        self._claims: Claims = Claims(state)
        state.parsers[INTERACTION] = self._claims.before(state.parsers[INTERACTION])
        self._turns: dict[int, float] = {}
        self.opened: set[int] = set()
        """Shards with a new session, whose guilds are still to be passed on."""
        self.least_shards: int = 1
        """The least number of shards to run, one more than Discord last refused."""
        self.is_resumable: bool = True
        """Whether the client's sessions may be resumed after it has ended."""
        self.token_digest: str = ""
        """The digest of the bot's token, which each version of the library stores in another place."""
        self.keeper: ShardKeeper = ShardKeeper(self, PROCESS, shards.part(settings().bot_shards))

    @property
    def may_ask_for_members(self) -> bool:
        """Whether the session lacks the Members intent and a new one would get it."""
        reader = self.get_cog(MemberReader.__name__)
        return isinstance(reader, MemberReader) and reader.switched_on

    async def login(self, token: str) -> None:
        """Log in, and remember the token's digest."""
        self.token_digest = shards.digest(token.strip())
        await super().login(token)

    async def connect(self, *, reconnect: bool = True) -> None:
        """Run this process's shards until one of them ends for a reason that concerns all shards."""
        part = self.keeper.part
        limit = await identifies.read_discords_count(gateways())
        async with transaction() as db:
            if limit is not None:
                await identifies.learn(db, limit)
            in_use = await shards.in_use(db, part)
            wanted = limit.shards if limit is not None else in_use or await identifies.recommended(db)
        count = part.count or max(wanted, in_use, self.least_shards)
        state: Any = self._connection
        self.shard_count = state.shard_count = count
        state.shard_ids = range(count)
        state.shards_launched.set()
        await self.keeper.run(count)

    async def may_identify(self, shard_id: int) -> None:
        """Wait until the daily limit of identifies allows one for the shard."""
        while (pause := await self._pause()) > 0:
            log.error("identifies exhausted shard=%s wait_seconds=%.0f", shard_id, pause)
            await tell(
                storable_count(
                    "Discord allows no more connections for now; the bot connects again in {count} minute.",
                    "Discord allows no more connections for now; the bot connects again in {count} minutes.",
                    max(1, round(pause / 60)),
                )
            )
            await asyncio.sleep(min(pause, WAIT_SECONDS))

    async def _pause(self) -> float:
        limit = await identifies.read_discords_count(gateways())
        async with transaction() as db:
            if limit is not None:
                await identifies.learn(db, limit)
            return await identifies.pause(db)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Count the identify, and wait until the last one of any process is long enough ago.

        Raises IdentifyLater if that is too long for an open connection; the turn is kept for the next connection.
        """
        clock, number = asyncio.get_running_loop().time, shard_id or 0
        at = self._turns.pop(number, -TURN_KEPT_SECONDS)
        if clock() - at >= TURN_KEPT_SECONDS:
            try:
                async with transaction() as db:
                    at = clock() + await identifies.take(db, number)
            except identifies.TooManyIdentifies:
                raise IdentifyLater(WAIT_SECONDS) from None
        if (wait := at - clock()) > LONGEST_HELD_SECONDS:
            self._turns[number] = at
            raise IdentifyLater(wait)
        await asyncio.sleep(wait)

    def _opening(self, event: str, parse: Callable[[Any], Any]) -> Callable[[Any], None]:
        """Return a parser that also notes the new session in the connection, and drops guilds that the bot has left."""

        def parsed(data: Any) -> None:
            number: int = data["__shard_id__"]
            if event == READY:
                with contextlib.suppress(KeyError, TypeError):
                    self.keeper.drop_guilds(number, keep={str(one["id"]) for one in data["guilds"]})
                self.opened.add(number)
            parse(data)
            if (connection := self.keeper.connections.get(number)) is not None:
                connection.came_up()
            if event == RESUMED and not self.is_ready() and not self.opened:
                # A session that another process began gets no READY, for which the library waits, so imitate it.
                state: Any = self._connection
                self.dispatch("connect")
                state.call_handlers("ready")
                self.dispatch("ready")

        return parsed

    def handling(self) -> set[asyncio.Task[Any]]:
        """Return the tasks that handle events, except interactions, which are not repeated."""
        named = {task for task in asyncio.all_tasks() if task.get_name().startswith(HANDLING)}
        return {task for task in named if not any(word in task.get_name() for word in NOT_REPEATED)}

    def _answering(self) -> set[asyncio.Task[Any]]:
        """Return the tasks that answer interactions, or are about to."""
        named = {task for task in asyncio.all_tasks() if task.get_name().startswith(HANDLING)}
        return self._claims.tasks | {task for task in named if any(word in task.get_name() for word in NOT_REPEATED)}

    async def _answered(self) -> None:
        """Wait for the answers that have begun: they need the HTTP session, and no other process sends them."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWERS_WITHIN):
                while answering := self._answering() - {asyncio.current_task()}:
                    await asyncio.wait(answering)

    async def _leave_taken(self, working: list[BackgroundCog]) -> None:
        """Let background tasks tell people that they end: nobody else will."""
        for cog in working:
            cog.take_leave()
        if leaving := {task for cog in working for task in cog.tasks() if task.cancelling()}:
            await asyncio.wait(leaving, timeout=TOLD_WITHIN)

    async def close(self) -> None:
        """Close the connections, and wait until background tasks and event handlers have ended, with their writes.

        Tasks that take longer than ENDS_WITHIN are cancelled.
        """
        # Otherwise a running registration finds the session closed and logs a traceback.
        await stop(*self._rollouts)
        whole = await self.keeper.disconnect(resumable=self.is_resumable)
        self.unreadable.close()
        await self._answered()
        working = [cog for cog in self.cogs.values() if isinstance(cog, BackgroundCog)]
        left: set[Any] = {task for cog in working for task in cog.tasks()}
        await self._leave_taken(working)
        await super().close()  # which unloads the cogs, and they cancel their tasks
        left |= {task for task in asyncio.all_tasks() if task.get_name().startswith(HANDLING)}
        left |= self._claims.tasks
        left.discard(asyncio.current_task())
        late = set[Any]()
        if left:
            _, late = await asyncio.wait(left, timeout=ENDS_WITHIN)
            await stop(*late)
        await self.keeper.leave(frozenset() if late else whole, resumable=self.is_resumable)

    async def process_application_commands(self, interaction: Interaction) -> None:
        """Carry out a command, or offer its choices; answer also a command with which the library cannot do anything.

        Another version of the bot may have registered it.
        """
        choices = interaction.type is nextcord.InteractionType.application_command_autocomplete
        data: Any = interaction.data
        if choices and self.get_application_command(int(data["id"])) is None:
            # Our commands are not registered yet in this session, and choices alone do not say which command it is.
            return
        try:
            await super().process_application_commands(interaction)  # pyright: ignore[reportUnknownMemberType]
        except Exception as fault:
            # The text of the library's errors has what the person typed.
            own = not isinstance(fault, nextcord.ApplicationError)
            log.error("command failed name=%s fault=%s", data.get("name"), type(fault).__name__, exc_info=own)
            if not choices:
                await answer_own_fault(interaction)

    async def on_application_command_error(self, interaction: Interaction, exception: Exception) -> None:
        """Log the error of a command's function, and answer; the library would only print it, past our log."""
        data: Any = interaction.data
        log.error("command failed name=%s", data.get("name"), exc_info=getattr(exception, "original", exception))
        await answer_own_fault(interaction)

    async def on_error(self, event_method: str, *args: Any, **kwargs: Any) -> None:
        """Log the error of an event's handler; the library would print it, past our log with its format and secrets."""
        log.exception("event handler failed event=%s", event_method.removeprefix("on_"))

    async def on_connect(self) -> None:
        """Register our commands with Discord, and retry until Discord accepts them."""
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
                except delivery.SENDING_ERRORS as fault:
                    if not delivery.is_temporary(fault):
                        raise
                    log.warning("commands not sent to Discord reason=%r retry_seconds=%.0f", fault, pause)
                    await asyncio.sleep(pause)
                else:
                    return


def _in_turn(request: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Wrap the library's request function, so that it takes turns in the global rate that all our processes share.

    Answers to interactions do not use it, and Discord does not count them (docs/facts.md#discord-rate-limits).
    """

    async def asked(*arguments: Any, **options: Any) -> Any:
        await gateways().discord.turn()
        return await request(*arguments, **options)

    return asked


def build(has_intent: bool = True) -> Bot:
    """Return the bot with its cogs. Call it in a running event loop, because the library needs one.

    With `has_intent`, the bot asks Discord to report members, which requires the application's Server Members Intent.
    """
    Route.BASE = settings().discord_api_url
    # The bot makes no voice calls, so the library need not warn about its missing voice parts.
    nextcord.VoiceClient.warn_nacl = False
    bot = Bot(
        intents=nextcord.Intents(guilds=True, members=has_intent),
        chunk_guilds_at_startup=False,
        member_cache_flags=nextcord.MemberCacheFlags.none(),
        guild_ready_timeout=0.5,
        allowed_mentions=nextcord.AllowedMentions.none(),
        help_command=None,
    )
    presses = Presses()
    events = Events(bot, has_intent=has_intent)
    events.opened, events.turns.speaks_for = bot.opened, bot.keeper.speaks_for
    rereads = UnreadableEventRereads(bot, events.lists)
    bot.keeper.busy = events.is_busy
    bot.keeper.handling = lambda: {*bot.handling(), *events.checks.tasks(), *rereads.tasks()}
    heartbeat = Heartbeat(bot, events.lists, bot.unreadable, bot.keeper)
    reader = MemberReader(bot, events.turns, events.lists, bot.keeper)
    listeners = (events, rereads, reader, heartbeat, presses)
    for cog in (*listeners, *cogs(presses)):
        bot.add_cog(cog)
    return bot
