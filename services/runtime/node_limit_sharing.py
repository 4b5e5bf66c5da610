"""Share the learned limits of nodes between processes, and keep them in the database for later starts."""

import asyncio
import logging
from time import monotonic

from sqlalchemy.dialects.postgresql import insert
from sqlmodel import select

from gateways.evm.rpc import node_limits
from gateways.evm.rpc.node_limits import Changes, NodeLimits
from models import NodeLimit, now, transaction
from models.db.session import AsyncSession
from services.runtime.database_faults import NOT_DONE, first_line

log = logging.getLogger(f"holdfast.{__name__}")

BEAT_SECONDS, READ_EVERY_SECONDS = 10.0, 300.0
FIELDS = ("log_blocks", "logs_need_address", "batch", "state_override", "states", "finalized")


async def read(db: AsyncSession) -> dict[str, NodeLimits]:
    """Return the stored limits of every node by the digest of its URL."""
    rows = await db.exec(select(NodeLimit).execution_options(populate_existing=True))
    return {row.node: NodeLimits(**{name: getattr(row, name) for name in FIELDS}) for row in rows.all()}


async def write(db: AsyncSession, changes: Changes) -> None:
    """Store what was learned about nodes; other fields stay unchanged."""
    # A fixed order, so that two processes do not deadlock.
    for name, fields in sorted(changes.items()):
        values = {**fields, "seen_at": now()}
        new = insert(NodeLimit).values(node=name, **values)
        await db.execute(new.on_conflict_do_update(index_elements=["node"], set_=values))


async def exchange() -> None:
    """Store what this process learned, and adopt what others stored."""
    news = node_limits.news()
    async with transaction() as db:
        await write(db, news)
        others = await read(db)
    node_limits.forget_stored(news)
    node_limits.learn(others)


async def run() -> None:
    """Store new limits within seconds and read those of other processes every few minutes, until cancelled."""
    seen = float("-inf")
    while True:
        try:
            if node_limits.news() or monotonic() - seen >= READ_EVERY_SECONDS:
                await exchange()
                seen = monotonic()
        except NOT_DONE as fault:
            log.warning("limits of nodes not exchanged reason=%s", first_line(fault))
        await asyncio.sleep(BEAT_SECONDS)
