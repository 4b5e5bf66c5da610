"""The cog that stores the bot's connection every few seconds, for Health, and how many identifies are left."""

import asyncio
import logging
from collections.abc import Collection
from functools import partial

from nextcord.ext import commands

from bot.gateway.member_lists import MemberLists
from bot.gateway.shard_keeper import ShardKeeper
from bot.gateway.unreadable_events import UnreadableEvents
from bot.interaction.background import BackgroundCog
from gateways import gateways
from models import transaction
from services.guilds import members_intent, rate_shares, shared_invalid_requests
from services.guilds.gateway import identifies
from services.health import provider_records
from services.runtime import counters, marketplace_limit_sharing
from services.runtime.database_faults import NOT_DONE, first_line
from services.runtime.retries import run_forever

log = logging.getLogger(f"holdfast.{__name__}")

PAUSE_SECONDS = 5.0
NOT_OPEN = "no open connection"
COUNTED_SECONDS = 300.0
"""Seconds between two reads of the number of identifies that are left."""


class Heartbeat(BackgroundCog):
    """The cog that stores the bot's own state, and the provider reports of this process."""

    def __init__(
        self, bot: commands.AutoShardedBot, lists: MemberLists, unreadable: UnreadableEvents, keeper: ShardKeeper
    ) -> None:
        self.bot: commands.AutoShardedBot = bot
        self.keeper: ShardKeeper = keeper
        self.lists: MemberLists = lists
        self.unreadable: UnreadableEvents = unreadable
        self.recorder: provider_records.Recorder = provider_records.Recorder()
        self.met: bool = False
        """Whether there has been a connection; before the first, `tell` stores why there is none."""
        self.task: asyncio.Task[None] = asyncio.create_task(run_forever(self._run))
        self.share: asyncio.Task[None] = asyncio.create_task(
            run_forever(partial(rate_shares.keep_renewed, rate_shares.BOT, keeper.process.name))
        )
        self.limits: asyncio.Task[None] = asyncio.create_task(run_forever(marketplace_limit_sharing.keep))
        self.left: asyncio.Task[None] = asyncio.create_task(run_forever(self._read_on))

    def tasks(self) -> Collection[asyncio.Task[None]]:
        """Return the tasks of the heartbeat and of this process's shares of the providers' limits."""
        return (self.task, self.share, self.limits, self.left)

    @property
    def connected(self) -> bool:
        """Whether every shard of this process is connected and has received its guilds."""
        connections = self.keeper.connections.values()
        return self.bot.is_ready() and bool(connections) and not any(one.is_closed() for one in connections)

    async def _run(self) -> None:
        while True:
            await self.write()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _read_on(self) -> None:
        while True:
            await asyncio.sleep(COUNTED_SECONDS)
            if (limit := await identifies.read_discords_count(gateways())) is not None:
                try:
                    async with transaction() as db:
                        await identifies.learn(db, limit)
                except NOT_DONE as fault:
                    log.warning("database did not answer reason=%s", first_line(fault))

    async def write(self) -> None:
        """Store the present state."""
        connected = self.connected
        self.met = self.met or connected
        self.keeper.down = None if connected or self.keeper.stands_by else NOT_OPEN
        elsewhere = self.keeper.trouble_elsewhere
        if not connected:
            reason = NOT_OPEN
        else:
            reason = elsewhere or (None if self.lists.are_reported else members_intent.told_without_intent())
        states = [provider_records.bot_is(connected and elsewhere is None, reason)] if self.met else []
        if self.keeper.stands_by:
            # The processes that hold the shards report.
            states = []
        try:
            await self.recorder.publish(states)
            if skipped := self.unreadable.counts():
                async with transaction() as db:
                    await counters.add(db, counters.EVENTS, skipped)
                self.unreadable.counted(skipped)
            await shared_invalid_requests.share(gateways().discord.refusals)
        except NOT_DONE as fault:
            log.warning("database did not answer, bot's state will be written later reason=%s", first_line(fault))


async def tell(reason: str) -> None:
    """Store why there is no connection."""
    try:
        async with transaction() as db:
            await provider_records.keep(db, [provider_records.bot_is(False, reason)])
    except NOT_DONE as fault:
        log.warning("database did not answer reason=%s", first_line(fault))
