"""From a transfer's log to the request for the role, and what following costs while nothing happens.

`python -m benchmarks.follow [--quick]`. The product's follower, reconcilers and role writer run as in a jobs process,
on their own database and node, with the daily sweep off; the fake Discord records when the request for a role comes.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from statistics import median, quantiles
from typing import Any

from benchmarks import roles
from benchmarks.support import community
from benchmarks.support.nft_chain import CHAIN, NftChain, nft_chain, wallet
from benchmarks.support.rounds import goal, options, prepared, said_by
from gateways import gateways
from gateways.evm.log_decoding import Transfer
from gateways.evm.transfer_logs import LogRead
from jobs.following.follower import Follower
from models import transaction
from services.core import queue
from settings import settings

FOLLOW = "following"
LOOKS = 12
SIZES = ((10, 1), (1_000, 10), (10_000, 10))
"""Members and collections for the measurements without events."""


class Seen:
    """Records when (monotonic seconds) the follower got a log that was new to it, by watching the product's reader."""

    def __init__(self) -> None:
        self.moments: list[float] = []
        self._known: set[Transfer] = set()
        transfers: Any = gateways().transfers
        self._ask = transfers.of_contracts
        transfers.of_contracts = self._of_contracts

    async def _of_contracts(self, *arguments: Any) -> LogRead:
        found: LogRead = await self._ask(*arguments)
        if fresh := set(found.transfers) - self._known:
            self.moments += [time.monotonic()] * len(fresh)
            self._known |= fresh
        return found


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    given = options("follow", __doc__, quick="fewer transfers and members").parse_args(arguments)
    transfers = 40 if given.quick else 200
    with nft_chain() as node, community.database() as database, roles.fake_discord() as url:
        node.fill(1, collections=1, supply=1)
        latency(node, database, url, transfers)
    with nft_chain() as node:
        node.fill(1, collections=10, supply=1)
        calls = [idle(node, *size) for size in (SIZES[:2] if given.quick else SIZES)]
    goal(FOLLOW, "idle RPC calls a chain and minute: the most by the fewest", max(calls) / min(calls), most=1)


def latency(node: NftChain, database: str, url: str, transfers: int) -> None:
    """Make one transfer after the other, each to a member of another server; the product is a process of its own."""
    (contract,) = node.contracts
    arguments = "engine", database, node.url, url, contract, str(transfers)
    with prepared("benchmarks.follow", *arguments) as engine_process:
        for number in range(1, transfers + 1):
            node.mint(contract, 1 + number, [wallet(number)])
            roles.tally(url, least=1 + number)
        said, _ = engine_process.communicate("\n", timeout=60)
    seen: list[float] = json.loads(said)
    arrived: list[float] = roles.tally(url)["accepted"][1:]
    assert len(seen) == len(arrived) == transfers, (len(seen), len(arrived), transfers)
    took = [1000 * (there - here) for here, there in zip(seen, arrived, strict=True)]
    p95 = quantiles(took, n=20)[-1]
    print(f"\nFrom the log seen to the request for the role, {transfers} transfers, one at a time\n")
    print("| half within, ms | 95 of 100 within, ms | least, ms | most, ms |\n|---|---|---|---|")
    print(f"| {median(took):.1f} | {p95:.1f} | {min(took):.1f} | {max(took):.1f} |\n")
    goal(FOLLOW, "ms from the log seen to the role request, half", median(took), most=20)
    goal(FOLLOW, "ms from the log seen to the role request, 95 of 100", p95, most=60)


async def latency_here(database: str, node: str, url: str, contract: str, transfers: int) -> None:
    """Run the product's part; report the first full reconcile, and at the end the time at which it saw each log."""
    async with community.product(database, [node], DISCORD_API_URL=url, FOLLOW_SECONDS="0.1"):
        servers = await community.people(transfers + 1, servers=transfers + 1)
        for server in servers:
            await community.rules(server, [contract])
        seen = Seen()
        async with community.jobs("reconciler", "writer", "followers"):
            # Reconcile everybody once. The first wallet holds the chain's first token, and its request is awaited.
            async with transaction() as db:
                await queue.mark_all(db)
            await asyncio.to_thread(roles.tally, url, least=1)
            await roles.until("SELECT NOT EXISTS (SELECT 1 FROM due)")
            seen.moments.clear()
            await community.told_to_end()
    print(json.dumps(seen.moments))


def idle(node: NftChain, members: int, collections: int) -> float:
    """Return the requests to the node while nothing happens, from a process of its own."""
    with community.database() as database:
        contracts = ",".join(node.contracts[:collections])
        count: float = said_by("benchmarks.follow", "idle", database, node.url, contracts, str(members))
    print(f"- {members:,} members, {collections} collections: {count:.1f} RPC calls a chain and minute while idle")
    return count


async def idle_here(database: str, url: str, contracts: list[str], members: int) -> None:
    """Follow a chain whose blocks hold no transfer of ours, one poll a block; print the calls a minute."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(community.product(database, [url]))
        (server,) = await community.people(members)
        await community.rules(server, contracts)
        calls = 0

        async def count(_: Any) -> None:
            nonlocal calls
            calls += 1

        follower, outside = Follower(CHAIN), gateways()
        node = NftChain(url)
        # After all blocks of the chain's set-up: a follower begins a minute before the head.
        node.rpc("anvil_mine", "0x40")
        for _ in range(3):
            node.refresh()
            await follower.once()
        transfers: Any = outside.transfers
        for one in transfers._nodes.all():
            one._http.client.event_hooks = {"request": [count]}
        for _ in range(LOOKS):
            node.refresh()
            await follower.once()
        assert await community.due() == 0, "something happened"
        print(calls / LOOKS * 60 / settings().follow_seconds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["engine"]:
        asyncio.run(latency_here(*sys.argv[2:6], transfers=int(sys.argv[6])))
    elif sys.argv[1:2] == ["idle"]:
        asyncio.run(idle_here(sys.argv[2], sys.argv[3], sys.argv[4].split(","), int(sys.argv[5])))
    else:
        main(sys.argv[1:])
