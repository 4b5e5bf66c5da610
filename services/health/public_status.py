"""The public status for anybody: version, chains, providers and the daily sweep, but nothing about servers or people.

It is read from our own tables, never from a provider, and kept for some seconds, so any number of callers share one
reading.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from weakref import WeakKeyDictionary

from gateways.chains.catalogue import CHAINS
from gateways.transport import provider_reports
from locales import LANGUAGES, N_, _, language, listed, ngettext, number, sentences, speaking
from models import ProviderState, Schedule, now, transaction
from models.db.session import AsyncSession
from services.core.json_view import json_view
from services.core.relative_times import ago, length
from services.health import backlog, provider_health, provider_records
from services.health.provider_health import UNKNOWN
from services.health.views import BAD, GOOD, WARNING
from services.runtime.database_faults import NO_ANSWER
from services.triggers import chain_cursor, sweep, watch_list
from services.triggers.chain_cursor import CONTRACTS, FollowView
from settings import settings, version

KEPT_SECONDS = 5.0
"""How long an answer is reused."""
STATEMENT_SECONDS, READING_SECONDS = 1.0, 2.0
"""Time limits of one statement, and of the whole reading including the wait for a connection."""
ALL_WELL = N_("Everything works")
NOTHING_KNOWN = N_("Not known yet")
_SERVICES = {provider_reports.DISCORD: "Discord", provider_reports.OPENSEA: "OpenSea"}


@json_view
class ProviderStatus:
    """A provider or the bot: `state` is good, bad or unknown; `since` is when the state began."""

    name: str
    state: str
    text: str
    since: datetime | None
    checked_at: datetime | None


@json_view
class ChainStatus:
    """A chain: how many of its nodes answer, and how far behind its newest block we are.

    `state` is good, warning, bad or unknown. `behindBlocks` and `secondsAgo` (since the last reading) are null while
    the chain is not followed, and `behindBlocks` also while none of its nodes answers as it should.
    """

    chain: str
    name: str
    state: str
    text: str
    nodes: int
    nodes_answering: int
    behind_blocks: int | None
    seconds_ago: int | None


@json_view
class SweepStatus:
    """The daily sweep: `ageSeconds` have passed since the last sweep ended; null until the first one has ended."""

    state: str
    text: str
    started_at: datetime | None
    finished_at: datetime | None
    next_at: datetime | None
    age_seconds: int | None


@json_view
class StatusView:
    """The state of the whole product; `state` is the worst of its parts, `headline` says it in words."""

    version: str
    state: str
    headline: str
    checked_at: datetime
    database: bool
    providers: tuple[ProviderStatus, ...]
    chains: tuple[ChainStatus, ...]
    last_sweep: SweepStatus | None


Views = Mapping[str, StatusView]
"""One reading in each language, so that callers of every language share it."""


class _Readings:
    """The last reading, until when it is used, and the reading in progress, for one event loop."""

    def __init__(self) -> None:
        self.last: Views = {}
        self.until = 0.0
        self.under_way: asyncio.Task[Views] | None = None


_readings: WeakKeyDictionary[asyncio.AbstractEventLoop, _Readings] = WeakKeyDictionary()


async def view() -> StatusView:
    """Return the status, at most KEPT_SECONDS old. It never raises: if the database does not answer, it says so."""
    loop = asyncio.get_running_loop()
    mine = _readings.setdefault(loop, _Readings())
    if loop.time() < mine.until:
        return mine.last[language()]
    if mine.under_way is None:
        mine.under_way = asyncio.create_task(_read())
        mine.under_way.add_done_callback(partial(_keep, mine))
    # A caller that is cancelled must not cancel the reading for the others.
    return (await asyncio.shield(mine.under_way))[language()]


def _keep(mine: _Readings, done: asyncio.Task[Views]) -> None:
    mine.under_way = None
    if not done.cancelled() and done.exception() is None:
        mine.last, mine.until = done.result(), done.get_loop().time() + KEPT_SECONDS


async def _read() -> Views:
    try:
        async with asyncio.timeout(READING_SECONDS), transaction() as db:
            await db.execute(
                "SELECT set_config('statement_timeout', :limit, true)", {"limit": str(round(1000 * STATEMENT_SECONDS))}
            )
            found = await read(db)
    except NO_ANSWER:
        moment = now()
        return _in_each_language(lambda: _without_database(moment))
    # Outside the time limit, which is for the database: a process reads each catalogue when it first needs it.
    return _in_each_language(lambda: _view(found))


def _in_each_language(view: Callable[[], StatusView]) -> Views:
    found: dict[str, StatusView] = {}
    for one in LANGUAGES:
        with speaking(one):
            found[one] = view()
    return found


def _without_database(moment: datetime) -> StatusView:
    text = _("The database does not answer, so nothing else is known")
    return StatusView(version(), BAD, text, moment, False, (), (), None)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of the tables at one moment."""

    states: Mapping[str, ProviderState]
    followed: Mapping[str, FollowView]
    sweep: Schedule | None
    moment: datetime


async def read(db: AsyncSession) -> _Rows:
    """Read the present status from the tables."""
    moment = now()
    states = await provider_records.states(db)
    watched = await watch_list.named(db)
    followed = {
        one.chain: one for one in await chain_cursor.views(db) if one.kind == CONTRACTS and one.chain in watched
    }
    row = await db.get(Schedule, sweep.SCHEDULE, populate_existing=True)
    return _Rows(states, followed, row, moment)


def _view(rows: _Rows) -> StatusView:
    states, followed, moment = rows.states, rows.followed, rows.moment
    providers = (_bot(states.get(provider_records.BOT), moment), *(_service(states.get(key), name, moment)
                 for key, name in _SERVICES.items()))  # fmt: skip
    chains = tuple(_chain(chain, states, followed.get(chain), moment) for chain in CHAINS if chain in settings().rpc)
    last = _sweep(rows.sweep, moment)
    state, headline = _summary(providers, chains, last)
    return StatusView(version(), state, headline, moment, True, providers, chains, last)


def _bot(row: ProviderState | None, moment: datetime) -> ProviderStatus:
    if row is None:
        return ProviderStatus(_("Bot"), UNKNOWN, _("Not known yet."), None, None)
    if provider_health.bot_is_silent(row, moment):
        said = _("The bot does not run. It was last heard from {ago}.").format(ago=ago(row.checked_at, moment))
        return ProviderStatus(_("Bot"), BAD, said, row.checked_at, row.checked_at)
    if row.state != provider_reports.OK:
        return ProviderStatus(_("Bot"), BAD, _("The bot is not connected to Discord."), row.since, row.checked_at)
    return ProviderStatus(_("Bot"), GOOD, _("The bot is connected to Discord."), row.since, row.checked_at)


def _service(row: ProviderState | None, name: str, moment: datetime) -> ProviderStatus:
    if row is None:
        unknown = _("Not known yet: {name} has not been asked.").format(name=name)
        return ProviderStatus(name, UNKNOWN, unknown, None, None)
    # Translators: {ago} is such as "3 minutes ago".
    asked = _("Last asked {ago}.").format(ago=ago(row.checked_at, moment))
    if row.state == provider_reports.OK:
        return ProviderStatus(
            name, GOOD, _("{name} answers.").format(name=name) + f" {asked}", row.since, row.checked_at
        )
    said = f"{_(provider_health.SAYS[row.state]).format(name=name)} {asked}"
    return ProviderStatus(name, BAD, said, row.since, row.checked_at)


def _chain(
    chain: str, states: Mapping[str, ProviderState], followed: FollowView | None, moment: datetime
) -> ChainStatus:
    title, nodes = CHAINS[chain].title, len(settings().rpc[chain])
    answers = [
        provider_health.answers_of(states.get(provider_reports.node(chain, place)), chain, moment)
        for place in range(nodes)
    ]
    well, known = answers.count(provider_reports.OK), nodes - answers.count(UNKNOWN)
    if known == 0:
        state, told = UNKNOWN, _("Not known yet.")
    elif well == 0:
        state = BAD
        told = _("None of its nodes answers as it should.") if nodes > 1 else _("Its node does not answer.")
    else:
        state = GOOD if well == nodes else WARNING
        told = _("Its node answers.")
        if nodes > 1:
            told = _("{count} of {all} nodes answer.").format(count=well, all=nodes)
    if followed is None:
        return ChainStatus(chain, title, state, told, nodes, well, None, None)
    seconds = max(0, int((moment - followed.updated_at).total_seconds()))
    behind = None if state == BAD else followed.behind
    if moment - followed.updated_at > provider_health.late_after(chain):
        state = BAD
        read = _("No transfer has been read for {length}.").format(length=length(seconds))
    elif behind is None:
        read = _("Transfers are read up to block {block}.").format(block=number(followed.block))
    elif behind == 0:
        read = _("Transfers are read up to its newest block.")
    else:
        read = ngettext(
            "Transfers are read up to {count} block before its newest.",
            "Transfers are read up to {count} blocks before its newest.",
            behind,
        ).format(count=behind)
    told = sentences(told, read)
    return ChainStatus(chain, title, state, told, nodes, well, behind, seconds)


def _sweep(row: Schedule | None, moment: datetime) -> SweepStatus:
    if row is None:
        return SweepStatus(UNKNOWN, _("Not known yet: no daily sweep is planned."), None, None, None, None)
    age = None if row.finished_at is None else max(0, int((moment - row.finished_at).total_seconds()))
    if row.next_at < moment - backlog.LATE_AFTER:
        late = length((moment - row.next_at).total_seconds())
        state, told = BAD, _("The daily sweep is {length} late.").format(length=late)
    elif row.started_at is None:
        state, told = UNKNOWN, _("Not known yet: the first daily sweep has not begun.")
    elif row.finished_at is None:
        state, told = GOOD, _("A daily sweep is in progress. It began {ago}.").format(ago=ago(row.started_at, moment))
    else:
        state, told = GOOD, _("The last daily sweep ended {ago}.").format(ago=ago(row.finished_at, moment))
    return SweepStatus(state, told, row.started_at, row.finished_at, row.next_at, age)


def _summary(providers: Sequence[ProviderStatus], chains: Sequence[ChainStatus], last: SweepStatus) -> tuple[str, str]:
    """Return the worst state, and a sentence that names everything that does not work."""
    bot, *others = providers
    broken = [_("the bot")] if bot.state == BAD else []
    broken += [one.name for one in (*others, *chains) if one.state == BAD]
    broken += [_("the daily sweep")] if last.state == BAD else []
    if broken:
        told = ngettext("{parts} does not work as it should", "{parts} do not work as they should", len(broken)).format(
            parts=listed(broken)
        )
        return BAD, f"{told[:1].upper()}{told[1:]}"
    weak = [one.name for one in chains if one.state == WARNING]
    if weak:
        return WARNING, _("It works, but some nodes of {chains} do not answer").format(chains=listed(weak))
    known = [one for one in (*providers, *chains, last) if one.state != UNKNOWN]
    if not known:
        return UNKNOWN, _(NOTHING_KNOWN)
    return GOOD, _(ALL_WELL)
