"""The limits of nodes are learnt by every process and kept in the database, for those that start later."""

import asyncio
import logging
from time import monotonic

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoneFree
from sqlmodel import select

from gateways.evm.rpc import node_limits
from gateways.evm.rpc.node_limits import Changes, NodeLimits
from models import NodeLimit, now, transaction
from models.db.session import AsyncSession

log = logging.getLogger("holdfast.services.runtime.node_limits")

BEAT_SECONDS, READ_EVERY_SECONDS = 10.0, 300.0
FIELDS = ("log_blocks", "logs_need_address", "batch", "state_override", "states", "finalized")


async def read(db: AsyncSession) -> dict[str, NodeLimits]:
    """What is kept of every node, by the digest of its URL."""
    rows = await db.exec(select(NodeLimit).execution_options(populate_existing=True))
    return {row.node: NodeLimits(**{name: getattr(row, name) for name in FIELDS}) for row in rows.all()}


async def write(db: AsyncSession, changes: Changes) -> None:
    """Write down what was found out of nodes; fields that are not among it stay as they are."""
    # In one order, so that two processes do not wait for each other.
    for name, fields in sorted(changes.items()):
        values = {**fields, "seen_at": now()}
        new = insert(NodeLimit).values(node=name, **values)
        await db.execute(new.on_conflict_do_update(index_elements=["node"], set_=values))


async def exchange() -> None:
    """Write down what this process found out, and take over what the others did."""
    news = node_limits.news()
    async with transaction() as db:
        await write(db, news)
        others = await read(db)
    node_limits.told(news)
    node_limits.learn(others)


async def run() -> None:
    """Write news within seconds, and see now and then what others found, until cancelled."""
    seen = float("-inf")
    while True:
        try:
            if node_limits.news() or monotonic() - seen >= READ_EVERY_SECONDS:
                await exchange()
                seen = monotonic()
        except (DBAPIError, NoneFree) as fault:
            log.warning("limits of nodes not exchanged reason=%s", getattr(fault, "orig", fault))
        await asyncio.sleep(BEAT_SECONDS)
