"""Stay connected: start a new client when one ends, and report the reason to Health."""

import asyncio
import logging
import threading
from typing import Protocol

import nextcord
from nextcord.gateway import KeepAliveHandler

from bot.client import Bot
from bot.gateway.shard_keeper import OtherCount
from bot.heartbeat import tell
from gateways import gateways
from locales import N_
from locales.stored_texts import said, storable
from services.guilds import members_intent
from services.guilds.gateway import shards
from services.runtime.database_faults import NOT_DONE
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

FIRST_PAUSE, LONGEST_PAUSE, REFUSED_PAUSE = 1.0, 120.0, 120.0
"""Pauses in seconds between clients. Discord allows 1,000 logins a day and then resets the token
(docs/facts.md#discord-gateway), so clients that end at once may log in at most every 120 s, 720 times a day."""
DENIED_FOR = 3600.0
"""Seconds for which sessions do not ask for an intent that Discord refused (4014) without saying that it is off."""
LIVED_WELL = 180.0
"""Seconds after which a client counts as healthy, so that the next pause is short again."""
CANCELLED_EVERY, CLOSES_WITHIN = 1.0, 5.0
TOLD_EVERY, CHECKED_EVERY = 20.0, 5.0

NO_INTENT = N_("Discord refuses the intent (4014). Turn on Server Members Intent: Developer Portal › Bot.")
NO_TOKEN = N_("Discord rejects DISCORD_BOT_TOKEN. Copy it again: Developer Portal › Bot › Reset Token.")
TOO_FEW = N_(
    "Discord refuses the bot's connection: it is in more servers than so few shards may have (4011). Set BOT_SHARDS to "
    "auto, or to the number of shards that the `live-check` of your installation shows."
)
_NOT_GRANTED = 4014
_TOKEN_CODES, _INTENT_CODES, _SHARD_CODES = frozenset({4004}), frozenset({4013, _NOT_GRANTED}), frozenset({4010, 4011})
"""Close codes after which another attempt would fail too (docs/facts.md#discord-gateway)."""


KNOWN = (OtherCount, nextcord.ConnectionClosed, nextcord.HTTPException, nextcord.GatewayNotFound, OSError, *NOT_DONE)
"""Errors after which a client's sessions can be resumed."""
SHARDS_PAUSE = 3600.0
"""Seconds until the bot connects again with too few shards, which fails until an operator sets BOT_SHARDS."""


class SwitchedOn(Exception):
    """The Members intent was switched on while a session ran without it."""


class Build(Protocol):
    """A function that makes a client; `has_intent` says whether its session asks for the Members intent."""

    def __call__(self, has_intent: bool, /) -> Bot: ...


def reason(fault: BaseException | None, *, has_intent: bool = True) -> tuple[str, bool]:
    """Return why a client ended, as a storable sentence, and whether an operator has to act first.

    `has_intent` says whether its session asked for the Members intent: otherwise nobody could act on its refusal.
    """
    if isinstance(fault, OtherCount):
        return storable("Another process runs {count} shards.", count=fault.count), False
    if isinstance(fault, SwitchedOn):
        return N_("The Server Members Intent was switched on."), False
    if isinstance(fault, nextcord.PrivilegedIntentsRequired):
        return (NO_INTENT, True) if has_intent else (_closed(_NOT_GRANTED), False)
    if isinstance(fault, nextcord.LoginFailure):
        return NO_TOKEN, True
    if isinstance(fault, nextcord.ConnectionClosed):
        if fault.code in _INTENT_CODES and (has_intent or fault.code != _NOT_GRANTED):
            return NO_INTENT, True
        if fault.code in _TOKEN_CODES:
            return NO_TOKEN, True
        if fault.code in _SHARD_CODES:
            return TOO_FEW, settings().bot_shards != shards.AUTO
        return _closed(fault.code or 0), False
    if isinstance(fault, nextcord.HTTPException):
        return storable("Discord does not let the bot connect (HTTP {status}).", status=fault.status), False
    if isinstance(fault, OSError | nextcord.GatewayNotFound):
        return N_("Discord cannot be reached."), False
    if isinstance(fault, NOT_DONE):
        return storable("The database does not answer ({reason}).", reason=type(fault).__name__), False
    if fault is None:
        return N_("The connection ended."), False
    return storable("Something came from Discord that could not be read ({error}).", error=type(fault).__name__), False


def _closed(code: int) -> str:
    return storable("Discord closed the connection (code {code}).", code=code)


async def live(build: Build, token: str) -> None:
    """Run one client after another until cancelled; without the Members intent if Discord refuses it."""
    loop = asyncio.get_running_loop()
    pause, denied_until, least = FIRST_PAUSE, 0.0, 1
    while True:
        began = loop.time()
        has_intent = began >= denied_until and await members_intent.may_ask(gateways())
        bot = build(has_intent)
        bot.least_shards = least
        fault = await _one_life(bot, token)
        sentence, refused = reason(fault, has_intent=has_intent)
        if sentence == NO_INTENT and has_intent and settings().members_intent == "auto":
            log.warning("%s", members_intent.NOT_TOLD)
            # What Discord itself says about the intent is read before each session; only if it contradicts the
            # refusal, or is not known, the intent is left alone for a while.
            denied_until = 0.0 if await members_intent.is_off(gateways()) else loop.time() + DENIED_FOR
            continue
        if sentence == TOO_FEW and not refused:
            least = (bot.shard_count or 1) + 1
        if isinstance(fault, OtherCount):
            log.info("%s", said(sentence))
            continue
        if isinstance(fault, SwitchedOn):
            log.info("%s", said(sentence))
            denied_until = 0.0
            continue
        if refused:
            log.critical("%s", said(sentence))
        elif isinstance(fault, KNOWN):
            cause = f"{type(fault).__name__}: {(str(fault).splitlines() or [''])[0]}"
            log.error("client ended, starting another reason=%s cause=%s", said(sentence), cause)
        else:
            log.error("client ended, starting another reason=%s", said(sentence), exc_info=fault)
        pause = FIRST_PAUSE if loop.time() - began > LIVED_WELL else min(pause * 2, LONGEST_PAUSE)
        longest = SHARDS_PAUSE if sentence == TOO_FEW else REFUSED_PAUSE
        await _rest(longest if refused else pause, sentence)


async def _one_life(bot: Bot, token: str) -> BaseException | None:
    task = asyncio.create_task(bot.start(token, reconnect=True))
    try:
        while not (await asyncio.wait({task}, timeout=CHECKED_EVERY))[0]:
            if bot.may_ask_for_members:
                bot.is_resumable = False
                return SwitchedOn()
        fault = task.exception()
        # After an unknown error the session is not resumed, because the error could happen again.
        bot.is_resumable = isinstance(fault, KNOWN)
        return fault
    finally:
        await _end(bot, task)


async def _end(bot: Bot, task: asyncio.Task[None]) -> None:
    """Close the client and end its task, also for a client that never connected, because its cogs have tasks.

    The client is closed first, for two reasons: while it reconnects, the library ignores a cancellation unless it is
    closed; and a connection that is just opening ends properly if it gets the time. Then the task is cancelled until it
    has ended.
    """
    closing = asyncio.create_task(bot.close())
    await asyncio.wait({closing, task}, timeout=CLOSES_WITHIN)
    for left in (closing, task):
        while not left.done():
            left.cancel()
            await asyncio.wait({left}, timeout=CANCELLED_EVERY)
        if not left.cancelled() and (fault := left.exception()) is not None:
            log.info("old client ended reason=%s", type(fault).__name__)
    for thread in threading.enumerate():
        # A connection that was opening when the client ended already has a heartbeat thread, which nothing else stops.
        if isinstance(thread, KeepAliveHandler):
            thread.stop()


async def _rest(seconds: float, sentence: str) -> None:
    """Wait, and report the reason regularly."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        await tell(sentence)
        await asyncio.sleep(min(left, TOLD_EVERY))
