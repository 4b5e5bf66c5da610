"""The cost of counting the holders of a collection with a long history: `python -m benchmarks.sizes.census [--quick]`.

Two nodes give the same transfers, 10,000 logs at most at a time, and the count reads both. Alone, `python -m
benchmarks.sizes.census DATABASE NODE NODE` counts once and prints what it took.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.sizes import history_node
from benchmarks.support import community
from benchmarks.support.nft_chain import CHAIN
from benchmarks.support.rounds import goal, options, said_by, serving
from jobs.census_taker import CensusTaker
from models import Reach, transaction
from services.collections.census import reach
from services.collections.census.reach import ReachView
from services.rules.expression import Requirement

NAME = "census"
SIZES, QUICK_SIZES = (100_000, 1_000_000), (20_000, 100_000)
MOST_GROWTH_MB = 60
PATIENCE_SECONDS = 900


async def counted(database: str, nodes: Sequence[str]) -> None:
    """Count once, and print the holders, the seconds, the processor seconds and the megabytes."""
    async with community.product(database, nodes):
        (server_id,) = await community.people(1)
        began, used = time.monotonic(), time.process_time()
        async with transaction() as db:
            reach_id = await reach.start(db, server_id, Requirement("basic", CHAIN, history_node.CONTRACT))
        taker = CensusTaker("benchmark")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (found := await _view(reach_id)).state not in {"done", "failed"}:
                if not await taker.once():
                    await asyncio.sleep(0.1)
        seconds, used = time.monotonic() - began, time.process_time() - used
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"holders": found.holders, "said": found.reason, "seconds": seconds, "cpu": used, "mb": most}))


async def _view(reach_id: int) -> ReachView:
    async with transaction() as db:
        return await reach.view(db, await db.get_one(Reach, reach_id))


def measure(transfers: int) -> dict[str, Any]:
    """Count in a process of its own."""
    node = "benchmarks.sizes.history_node", str(transfers)
    with community.database() as database, serving(*node) as one, serving(*node) as other:
        found: dict[str, Any] = said_by("benchmarks.sizes.census", database, one, other)
    if found["holders"] != (right := history_node.holders(transfers)):
        raise SystemExit(f"{found['holders']} holders counted where {right} is right: {found['said']}")
    return found


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    given = options("sizes.census", __doc__, quick="20,000 and 100,000 transfers").parse_args(arguments)
    sizes = QUICK_SIZES if given.quick else SIZES
    found = {transfers: measure(transfers) for transfers in sizes}
    print("\n| transfers | holders | seconds | processor time, µs a transfer | memory, MB |\n|---|---|---|---|---|")
    for transfers, one in found.items():
        print(
            f"| {transfers:,} | {one['holders']:,} | {one['seconds']:.1f} | {1e6 * one['cpu'] / transfers:.1f} "
            f"| {one['mb']:.0f} |"
        )
    few, many = (found[transfers] for transfers in sizes)
    goal(
        NAME,
        f"{sizes[1]:,} transfers take so many MB more than {sizes[0]:,}",
        many["mb"] - few["mb"],
        most=MOST_GROWTH_MB,
    )


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].startswith("postgresql"):
        asyncio.run(counted(sys.argv[1], sys.argv[2:]))
    else:
        main(sys.argv[1:])
