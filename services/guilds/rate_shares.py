"""Shares of Discord's request rate: how many requests each process may send, renewed every few seconds.

When Discord asks one process to pause all requests, all processes pause.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from gateways import gateways
from gateways.discord.rate_limiter import LAPSED_PER_SECOND, READS, WRITES, RequestTurns
from models import transaction
from models.db.session import AsyncSession
from services.runtime.database_faults import NOT_DONE, first_line

log = logging.getLogger(f"holdfast.{__name__}")

TOTAL = 46.0
"""Requests a second to share out. Discord allows 50; the difference covers jitter and expired shares."""
WEB, BOT, JOBS, WRITER = "web", "bot", "jobs", "writer"
KEPT = {WEB: 4.0, BOT: 2.0, JOBS: 2.0, WRITER: 12.0}
"""Minimum requests a second for all processes of each kind together."""
MORE = 1.25
"""Factor on a process's recent demand, so that its share can grow."""
BEAT_SECONDS, LEASE_SECONDS = 2.0, 5.0
KEY = 4_815_162_343
"""The advisory lock under which a process takes its share."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A process, how many requests a second it wants, and how many it may send now."""

    process: str
    kind: str
    wanted: float
    share: float = 0.0


def shares(wishes: Sequence[Wish]) -> dict[str, float]:
    """Return the share of each process; together they make TOTAL.

    Each process gets an equal part of its kind's minimum. The remainder is divided equally among the processes that
    want more, up to what they want. The surplus is split between role writes and screens, so that neither has to wait
    for its share to grow.
    """
    kinds = [wish.kind for wish in wishes]
    found = {wish.process: KEPT[wish.kind] / kinds.count(wish.kind) for wish in wishes}
    left = TOTAL - sum(found.values())
    open_wishes = {wish.process: more for wish in wishes if (more := wish.wanted * MORE - found[wish.process]) > 0}
    while open_wishes and left > 1e-9:
        each = min(left / len(open_wishes), min(open_wishes.values()))
        for process in list(open_wishes):
            found[process] += each
            left -= each
            open_wishes[process] -= each
            if open_wishes[process] <= 1e-9:
                del open_wishes[process]
    first = [wish.process for wish in wishes if wish.kind == WRITER]
    writers = first or [wish.process for wish in wishes if wish.kind == JOBS]
    groups = [one for one in (writers, [wish.process for wish in wishes if wish.kind == WEB]) if one] or [list(found)]
    for takers in groups:
        for process in takers:
            found[process] += max(0.0, left) / len(groups) / len(takers)
    return found


class Share:
    """This process's share, renewed every few seconds."""

    def __init__(self, kind: str, turns: RequestTurns, name: str | None = None) -> None:
        self.name: str = name or uuid4().hex
        self._kind, self._turns = kind, turns
        self._last: float | None = None

    async def beat(self) -> None:
        """Publish what this process wants, and take its share as far as the others leave it free."""
        clock = asyncio.get_running_loop().time
        began, asked = clock(), self._turns.wanted()
        seconds = BEAT_SECONDS if self._last is None else max(began - self._last, 0.1)
        self._last = began
        kind = WRITER if self._kind == JOBS and asked[WRITES] else self._kind
        mine = Wish(self.name, kind, (asked[WRITES] + asked[READS]) / seconds)
        async with transaction() as db:
            _, rows = await db.together(
                ("SELECT pg_advisory_xact_lock(:key)", {"key": KEY}),
                (
                    "DELETE FROM rate_share WHERE seen_at < now() - make_interval(secs => :lease) - interval '1 second'"
                    " RETURNING NULL",
                    {"lease": LEASE_SECONDS},
                ),
            )
            (rows,) = await db.together((_READ, {}))
            others = [Wish(*wish) for *wish, _ in rows if wish[0] != self.name]
            if (pause := max((float(seconds) for *_, seconds in rows), default=0.0)) > 0:
                self._turns.join_pause(pause)
            # A process with too large a share reduces it at its own next beat. Until then the excess is not free.
            free = TOTAL - sum(other.share for other in others)
            share = min(shares([*others, mine])[self.name], max(free, LAPSED_PER_SECOND))
            mine = replace(mine, share=share)
            # A smaller share takes effect here before the others can see that more is free.
            self._turns.lease(share, began + LEASE_SECONDS)
            await db.together(
                (
                    _WRITE,
                    {
                        "process": mine.process, "kind": mine.kind, "wanted": mine.wanted, "share": mine.share,
                        "pause": self._turns.met_pause() or None,
                    },
                )
            )  # fmt: skip


# Discord's global limits apply to an IP address or to the whole bot, so all processes pause when one has to.
_READ = """
    SELECT process, kind, wanted, share, COALESCE(GREATEST(extract(epoch FROM paused_until - clock_timestamp()), 0), 0)
    FROM rate_share
"""
_WRITE = """
    INSERT INTO rate_share (process, kind, wanted, share, seen_at, paused_until)
    VALUES (:process, :kind, :wanted, :share, clock_timestamp(), clock_timestamp() + make_interval(secs => :pause))
    ON CONFLICT (process) DO UPDATE SET kind = EXCLUDED.kind, wanted = EXCLUDED.wanted, share = EXCLUDED.share,
        seen_at = EXCLUDED.seen_at, paused_until = EXCLUDED.paused_until
    RETURNING 1
"""


# Versions that claim no interactions give their shares names of hexadecimal digits only.
_CLAIMS_NOTHING = """
    SELECT EXISTS (SELECT 1 FROM rate_share WHERE kind = :bot AND strpos(process, ':') = 0
                   AND seen_at > clock_timestamp() - make_interval(secs => :lease))
"""


async def is_beside_an_older_bot(db: AsyncSession) -> bool:
    """Return whether a bot that claims no interactions is running, or ended less than LEASE_SECONDS ago.

    A bot that claims them passes its name to `keep_renewed`; that name contains a colon.
    """
    found = await db.execute(_CLAIMS_NOTHING, {"bot": BOT, "lease": LEASE_SECONDS})
    return bool(found.scalar_one())


async def keep_renewed(kind: str, name: str | None = None) -> None:
    """Renew this process's share until cancelled, under this name or a random one."""
    share = Share(kind, gateways().discord.turns, name)
    while True:
        try:
            await share.beat()
        except NOT_DONE as fault:
            log.warning("share of Discord's rate not renewed reason=%s", first_line(fault))
        await asyncio.sleep(BEAT_SECONDS)
