"""Correct stored block numbers that their chain has not reached, which came from a node's wrong head."""

from datetime import timedelta

from gateways.chains.catalogue import CHAINS
from models.db.session import AsyncSession

MARGIN_SECONDS = 3_600
"""A block is wrong if the chain, at its usual pace, needs more than this time to get there from its known head."""
LONG = timedelta(minutes=10)
"""Minimum age of a reading that is corrected, and maximum age of the head that it is compared with."""

_REACHED = """
    WITH reached AS (
        SELECT c.chain, c.head, c.head + m.margin AS most FROM cursor c
        JOIN unnest(CAST(:chains AS text[]), CAST(:margins AS bigint[])) AS m (chain, margin) ON m.chain = c.chain
        WHERE c.head > 0 AND c.updated_at > now() - CAST(:long AS interval))
"""
# Balances and snapshots keep their values, moved to the block that the chain has reached. Rows that only state a block,
# and tokens counted one by one, are deleted and read again. Hints keep their ids, but their blocks are searched again.
_CORRECTIONS = (
    "UPDATE observation t SET block = r.head FROM reached r "
    "WHERE t.chain = r.chain AND t.block > r.most AND t.observed_at <= now() - CAST(:older AS interval)",
    "UPDATE survey t SET block = r.head FROM reached r "
    "WHERE t.chain = r.chain AND t.block > r.most AND t.observed_at <= now() - CAST(:older AS interval)",
    "DELETE FROM tally t USING reached r "
    "WHERE t.chain = r.chain AND t.block > r.most AND t.observed_at <= now() - CAST(:older AS interval)",
    "DELETE FROM sighting t USING reached r "
    "WHERE t.chain = r.chain AND t.block > r.most AND t.seen_at <= now() - CAST(:older AS interval)",
    "DELETE FROM delegation_read t USING reached r WHERE t.chain = r.chain AND t.block > r.most "
    "AND COALESCE(t.read_at, now()) <= now() - CAST(:older AS interval)",
    "UPDATE token_trail t SET searched = '{}' FROM reached r WHERE t.chain = r.chain "
    "AND t.updated_at <= now() - CAST(:older AS interval) "
    "AND jsonb_path_exists(t.searched, '$.*[*] ? (@ > $most)', jsonb_build_object('most', r.most))",
)


async def correct(db: AsyncSession, *, older: timedelta = LONG) -> None:
    """Correct the blocks beyond the heads of the followed chains in readings that are `older` than this.

    Until then every node counts as behind, and nothing can be decided.
    """
    chains = list(CHAINS.values())
    values = {
        "chains": [chain.key for chain in chains],
        "margins": [int(MARGIN_SECONDS / chain.block_seconds) for chain in chains],
        "long": LONG,
        "older": older,
    }
    for statement in _CORRECTIONS:
        await db.execute(_REACHED + statement, values)
