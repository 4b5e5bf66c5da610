"""The process that runs whole sweeps: `python -m benchmarks.sizes.sweep_process DATABASE NODE CONTRACTS MEMBERS`.

Says "ready" once its members are settled; then each line that it reads is one round, and answered by one Sample.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.support import community
from benchmarks.support.rounds import READY, Measured, Sample
from gateways import gateways
from jobs import reconciler
from models import transaction
from services.triggers import sweep
from tests.support.statements import Statements

TICKS = os.sysconf("SC_CLK_TCK")


class DatabaseCpu:
    """The processor time of the database's server."""

    def __init__(self) -> None:
        self._postmaster = ""

    async def begin(self) -> None:
        """Find the server."""
        async with transaction() as db:
            directory = (await db.execute("SHOW data_directory")).scalar_one()
        self._postmaster = (Path(directory) / "postmaster.pid").read_text().split()[0]

    def seconds(self) -> float:
        """Return the processor seconds of the server's processes; the postmaster's account includes ended ones."""
        return sum(cpu_of(one) for one in Path("/proc").iterdir() if one.name.isdigit() and self._is_ours(one))

    def _is_ours(self, process: Path) -> bool:
        return process.name == self._postmaster or _parent(process) == self._postmaster


class Counts:
    """Statements sent to the database, requests sent to nodes, and the database's processor time."""

    def __init__(self) -> None:
        self.requests = 0
        self.statements = Statements()
        self.database = DatabaseCpu()

    async def begin(self) -> None:
        """Count from now on."""
        await self.database.begin()
        self.statements.__enter__()
        chains: Any = gateways().chains
        pool: Any = chains._evm._pool
        for node in pool.all():
            node._http.client.event_hooks = {"request": [self._request]}

    async def _request(self, _: Any) -> None:
        self.requests += 1


def _fields(process: Path) -> list[str]:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _parent(process: Path) -> str:
    fields = _fields(process)
    return fields[1] if fields else ""


def cpu_of(process: Path) -> float:
    """Return the processor seconds of a process, by its folder in /proc, with its ended children."""
    fields = _fields(process)
    return sum(int(fields[at]) for at in (11, 12, 13, 14)) / TICKS if fields else 0.0


async def one_round() -> int:
    """Run a sweep until every member is reconciled, as a jobs process does it; return the number of members."""
    async with transaction() as db:
        members = await sweep.start_sweep(db)

    async def work() -> None:
        worker = reconciler.Reconciler(asyncio.Event())
        while await worker.once():
            pass

    await asyncio.gather(work(), work())
    return members


async def main() -> None:
    """Prepare, then run one sweep for each line."""
    url, node, contracts, count = sys.argv[1:5]
    members, named = int(count), contracts.split(",")
    async with community.product(url, [node]):
        (server,) = await community.people(members)
        await community.rules(server, named)
        await one_round()
        await community.written()
        await one_round()
        counts = Counts()
        await counts.begin()
        print(READY, end="", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            counts.statements.count = counts.requests = 0
            before = counts.database.seconds()
            with Measured() as time:
                done = await one_round()
            assert done == members, (done, members)
            left = await community.due()
            assert left == 0, f"{left} members could not be answered"
            sample = Sample(time.seconds, time.cpu, members * len(named), 0, _rss())
            cpu = {
                "ours, µs": round(time.cpu / members * 1e6),
                "database, µs": round((counts.database.seconds() - before) / members * 1e6),
            }
            said = {"statements": counts.statements.count, "requests": counts.requests, "cpu": cpu}
            print(json.dumps({**sample.__dict__, "counts": said}), flush=True)


def _rss() -> int:
    """Return the peak memory in kilobytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    asyncio.run(main())
