"""Jobs processes beside each other: `python -m benchmarks.sizes.scale [--quick]`.

The same sweep by 1, 2 and 4 processes over a node 50 ms away: what a member costs each process and the database, how
much of the database's work waits for locks, and the calls. On few cores the clock says how busy the machine is; the
processor time of a member says whether processes disturb each other.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg

from benchmarks import guilds
from benchmarks.sizes.sweep_process import DatabaseCpu, cpu_of, one_round
from benchmarks.support import community
from benchmarks.support.nft_chain import nft_chain
from benchmarks.support.rounds import goal, options, prepared
from models import transaction
from services.runtime.task_cancellation import stop
from setting_checks import libpq_url
from tests.support.distant_node import far, tally

SCALE = "scale"
PROCESSES = (1, 2, 4)
GUILDS, AWAY = 100, 50
SAMPLED_SECONDS = 0.01
LONGEST_SECONDS = 600


@dataclass
class Sweep:
    """One sweep by some processes: seconds by the clock, and processor seconds of each worker and the database."""

    members: int
    seconds: float
    each: list[float]
    database: float
    waits: Counter[str]
    """Samples of the workers' connections with a running statement, by wait event."""
    calls: int

    def micro(self, seconds: float) -> float:
        """Return microseconds a member."""
        return seconds / self.members * 1e6

    @property
    def ours(self) -> float:
        """Microseconds of all workers' processor time a member."""
        return self.micro(sum(self.each))

    def waiting(self, kind: str) -> float:
        """Return the percentage of the running statements' time that waited for this."""
        return 100 * self.waits[kind] / max(1, self.waits.total())


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    description = (__doc__ or "").splitlines()[0]
    parser = options("sizes.scale", description, quick="20,000 members, one round")
    parser.add_argument("--members", type=int)
    parser.add_argument("--rounds", type=int)
    given = parser.parse_args(arguments)
    members = given.members or (20_000 if given.quick else 100_000)
    asyncio.run(processes(members, given.rounds or (1 if given.quick else 3)))


async def processes(members: int, rounds: int) -> None:
    """Sweeps by each number of processes, in turns."""
    with nft_chain() as node, ExitStack() as stack:
        node.rpc("anvil_mine", "0x40")
        guilds.make_up(node, 1)
        url = stack.enter_context(far(node.url, AWAY))
        database = stack.enter_context(community.database())
        stack.enter_context(node.mining())
        found = {count: list[Sweep]() for count in PROCESSES}
        async with community.product(database, [url]):
            await settled(members)
            cpu = DatabaseCpu()
            await cpu.begin()
            for number in range(rounds):
                for count, own in found.items():
                    print(
                        f"\r  round {number + 1} of {rounds}: {count} processes ", end="", file=sys.stderr, flush=True
                    )
                    with workers(database, url, count) as pids:
                        own.append(await swept(members, url, pids, cpu, database))
    print("\r" + 50 * " " + "\r", end="", file=sys.stderr)
    show(members, found)


async def settled(members: int) -> None:
    """Create members in some guilds who have the roles of ten rules."""
    print(f"Settling {members:,} members ...", file=sys.stderr)
    servers = await community.people(members, servers=GUILDS)
    rows = [
        community.rule_row(server, contract, str(community.ROLE + guilds.RULES * at + number))
        for at, server in enumerate(servers)
        for number, contract in enumerate(guilds.contracts_of(0))
    ]
    async with transaction() as db:
        await community.add_rules(db, rows)
    await one_round()
    await community.written()
    await one_round()


@contextmanager
def workers(database: str, node: str, count: int) -> Iterator[list[int]]:
    """So many jobs processes that reconcile; yields their process ids."""
    with ExitStack() as stack:
        worker = "benchmarks.sizes.scale", "worker", database, node
        running = [stack.enter_context(prepared(*worker)) for _ in range(count)]
        yield [process.pid for process in running]
        for process in running:
            process.communicate("\n", timeout=60)


async def worker_here(database: str, node: str) -> None:
    """Run the product's part: a jobs process with only the reconciler."""
    async with community.product(database, [node]), community.jobs("reconciler"):
        await community.told_to_end()


async def swept(members: int, node: str, pids: Sequence[int], cpu: DatabaseCpu, database: str) -> Sweep:
    """Run one sweep from its start until nobody is due, and return its measurements."""
    tally(node, "DELETE")
    before, database_before = used(pids), cpu.seconds()
    began = time.perf_counter()
    async with sampled(database) as waits:
        assert await community.begin_sweep() == members
        while left := await community.due():
            if time.perf_counter() - began > LONGEST_SECONDS:
                raise SystemExit(f"{left} members are still due after ten minutes")
            await asyncio.sleep(0.1)
    seconds = time.perf_counter() - began
    each = [after - first for first, after in zip(before, used(pids), strict=True)]
    return Sweep(members, seconds, each, cpu.seconds() - database_before, waits, int(tally(node)["requests"]))


def used(pids: Sequence[int]) -> list[float]:
    """Return the seconds of processor time of each process so far."""
    return [cpu_of(Path("/proc") / str(pid)) for pid in pids]


_RUNNING = """
    SELECT COALESCE(wait_event_type, 'running'), count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'active' AND backend_type = 'client backend'
    AND pid <> pg_backend_pid() AND pid <> ALL(%s) GROUP BY 1
"""


@asynccontextmanager
async def sampled(database: str) -> AsyncIterator[Counter[str]]:
    """Count repeatedly what the running statements of other processes wait for."""
    found = Counter[str]()
    async with transaction() as db:
        own = (await db.execute("SELECT pg_backend_pid()")).scalar_one()

    async def sample() -> None:
        async with await psycopg.AsyncConnection.connect(libpq_url(database), autocommit=True) as connection:
            while True:
                for kind, count in await (await connection.execute(_RUNNING, ([own],))).fetchall():
                    found[str(kind)] += int(count)
                await asyncio.sleep(SAMPLED_SECONDS)

    task = asyncio.create_task(sample())
    try:
        yield found
    finally:
        await stop(task)


def show(members: int, found: dict[int, list[Sweep]]) -> None:
    """Print the table and the goals."""
    print(
        f"\nOne sweep over {members:,} members in {GUILDS} guilds, ten rules each, nothing new, a node {AWAY} ms away\n"
    )
    print("| processes | members a second | of our processor, µs a member | of each process | database, µs a member "
          "| database's share | waits for locks, % | calls a 1,000 checks |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for count, own in found.items():
        ours, base = median(one.ours for one in own), median(one.micro(one.database) for one in own)
        each = ", ".join(f"{own[-1].micro(seconds):.0f}" for seconds in sorted(own[-1].each))
        waits = median(one.waiting("Lock") for one in own)
        calls = median(one.calls for one in own) / members / guilds.RULES * 1000
        print(
            f"| {count} | {members / median(one.seconds for one in own):,.0f} | {ours:.0f} | {each} | {base:.0f} "
            f"| {100 * base / (base + ours):.0f} % | {waits:.1f} | {calls:.2f} |"
        )
    most, one = found[PROCESSES[-1]], found[1]
    print(f"\nWaits of running statements with {PROCESSES[-1]} processes, samples: {dict(most[-1].waits)}\n")
    what = f"processor time of a member with {PROCESSES[-1]} processes, by that with one"
    goal(SCALE, what, median(each.ours for each in most) / median(each.ours for each in one), most=1.2)
    what = f"hundredths of the statements' time that waited for locks, {PROCESSES[-1]} processes"
    goal(SCALE, what, median(each.waiting("Lock") for each in most), most=5)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(worker_here(*sys.argv[2:4]))
    else:
        main(sys.argv[1:])
