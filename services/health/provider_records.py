"""Record providers' answers from every process, for Health and for alerts, and ask those that were silent for long."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import case, func
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.marketplaces.quota import Use
from gateways.transport import provider_reports
from gateways.transport.errors import ProviderError
from gateways.transport.provider_reports import ProviderReport
from models import ProviderState, corrected, now, transaction
from models.db.session import AsyncSession
from services.runtime import counters
from settings import settings

BOT = "bot"
"""The bot's own connection to Discord's gateway."""
_SERVICES = (provider_reports.DISCORD, provider_reports.OPENSEA)
REPEATED_EVERY = timedelta(seconds=10)
"""How often an unchanged state is written again; a change is written at the next call."""
PROBED_AFTER, PROBED_UNFOLLOWED = timedelta(seconds=20), timedelta(minutes=10)
"""Silence after which a node is asked for its newest block: on a followed chain, and on others."""
SILENT_AFTER = timedelta(seconds=90)
"""Age at which an unconfirmed state becomes unknown; longer for nodes that are asked rarely."""
_NOBODY = "0x000000000000000000000000000000000000dead"
"""An address whose profile is read only to check whether OpenSea answers."""


@dataclass(slots=True)
class Recorder:
    """What one process has recorded and written so far."""

    _written: dict[str, tuple[str, datetime]] = field(default_factory=dict[str, tuple[str, datetime]])
    _held: dict[str, ProviderReport] = field(default_factory=dict[str, ProviderReport])
    _uncounted: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    async def publish(self, own: Sequence[ProviderReport] = ()) -> None:
        """Store what is new, the counts, and this process's `own` reports; if that fails, the next call stores it."""
        news, counts = self.news(), self.counts()
        if not (news or counts or own):
            return
        async with transaction() as db:
            await keep(db, [*news, *own])
            await counters.add(db, counters.ANSWERS, counts)
        self.stored(news, counts)

    def news(self) -> list[ProviderReport]:
        """Return the reports to write now: changes at once, others every few seconds."""
        for noted in provider_reports.read_off():
            self._held[noted.provider] = noted
        return [noted for noted in self._held.values() if self._is_due(noted)]

    def _is_due(self, noted: ProviderReport) -> bool:
        before = self._written.get(noted.provider)
        # Without regard to the sign: the clock may have been set back since the last report was written.
        return before is None or before[0] != noted.state or abs(noted.at - before[1]) >= REPEATED_EVERY

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how often each provider gave each outcome since `stored`, by provider and outcome."""
        self._uncounted.update(provider_reports.read_off_counts())
        return dict(self._uncounted)

    def stored(self, news: Sequence[ProviderReport], counts: Mapping[tuple[str, str], int]) -> None:
        """Record that these are in the database; without this call they are returned again."""
        for noted in news:
            self._written[noted.provider] = (noted.state, noted.at)
            if self._held.get(noted.provider) is noted:
                del self._held[noted.provider]
        self._uncounted -= Counter(counts)


def bot_is(connected: bool, reason: str | None = None) -> ProviderReport:
    """Return the report of the bot's own state, for `keep`."""
    return provider_reports.noted(BOT, provider_reports.OK if connected else provider_reports.DOWN, reason)


async def keep(db: AsyncSession, noted: Sequence[ProviderReport]) -> None:
    """Store reports; a report that is older than the stored one changes nothing."""
    if not noted:
        return
    # `corrected` converts a time by this machine's clock to the database's.
    rows = [
        {
            "provider": one.provider, "state": one.state, "reason": one.reason, "since": (at := corrected(one.at)),
            "checked_at": at, "ok_at": at if one.state == provider_reports.OK else None,
            "block": one.block, "block_time": one.block_time,
        }
        for one in sorted(noted, key=lambda one: one.provider)
    ]  # fmt: skip
    new = insert(ProviderState).values(rows)
    await db.execute(
        new.on_conflict_do_update(
            index_elements=["provider"],
            set_={
                "since": case(
                    (col(ProviderState.state) == new.excluded.state, col(ProviderState.since)), else_=new.excluded.since
                ),
                "state": new.excluded.state,
                "reason": new.excluded.reason,
                "checked_at": new.excluded.checked_at,
                "ok_at": func.coalesce(new.excluded.ok_at, col(ProviderState.ok_at)),
                "block": func.coalesce(new.excluded.block, col(ProviderState.block)),
                "block_time": func.coalesce(new.excluded.block_time, col(ProviderState.block_time)),
            },
            where=col(ProviderState.checked_at) <= new.excluded.checked_at,
        )
    )


async def states(db: AsyncSession) -> dict[str, ProviderState]:
    """Return every recorded provider by name that is asked again while it fails; others would be down forever.

    Others are nodes that the settings no longer have, and marketplaces that are asked only for somebody's question.
    """
    rows = await db.exec(select(ProviderState).execution_options(populate_existing=True))
    return {row.provider: row for row in rows.all() if _is_asked_again(row.provider)}


def _is_asked_again(provider: str) -> bool:
    chain, colon, place = provider.partition(":")
    if not colon:
        return provider in {BOT, *_SERVICES}
    return chain in CHAINS and int(place) < len(settings().rpc.get(chain, ()))


def probed_after(chain: str) -> timedelta:
    """Return how long a node of the chain may be silent before it is asked.

    On a followed chain this is at least two pauses between polls, because nodes take turns. A plan with few requests
    thus saves requests here too.
    """
    pause = settings().pause_between_looks(chain)
    return PROBED_UNFOLLOWED if pause is None else max(PROBED_AFTER, timedelta(seconds=2 * pause))


def silent_after(chain: str) -> timedelta:
    """Return how long an unconfirmed state of a node of the chain stays known."""
    return max(SILENT_AFTER, 2 * probed_after(chain) + timedelta(seconds=30))


def nodes(outside: Gateways) -> list[str]:
    """Return the names of all configured nodes."""
    return [provider_reports.node(chain, place) for chain in CHAINS for place in range(outside.chains.endpoints(chain))]


async def silent(db: AsyncSession, outside: Gateways) -> list[str]:
    """Return the providers to ask now: silent nodes, and services that did not answer last time."""
    known = await states(db)
    moment = now()
    services = [name for name in _SERVICES if name in known and known[name].state != provider_reports.OK]

    def is_due(name: str) -> bool:
        row = known.get(name)
        if row is None:
            return True
        # A failing provider is asked again soon, so that its recovery shows.
        pause = probed_after(name.partition(":")[0]) if row.state == provider_reports.OK else PROBED_AFTER
        return row.checked_at < moment - pause

    return [name for name in (*nodes(outside), *services) if is_due(name)]


async def probe(outside: Gateways, names: Iterable[str]) -> None:
    """Ask these providers concurrently; the results are recorded."""
    await asyncio.gather(*(_ask(outside, name) for name in names))


async def _ask(outside: Gateways, name: str) -> None:
    chain, is_node, place = name.partition(":")
    try:
        if is_node:
            head = await outside.chains.head(chain, int(place))
            provider_reports.answered(name, head.block, head.time)
        elif name == provider_reports.DISCORD:
            await outside.discord.me()
        else:
            await outside.opensea.profile(_NOBODY, use=Use.AGAIN)
    except ProviderError as fault:
        provider_reports.failed(name, fault, is_basic=bool(is_node))
