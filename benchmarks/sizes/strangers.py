"""The cost of strangers to the bot: `python -m benchmarks.sizes.strangers [--quick] [--strangers N …]`.

The whole product runs as `make run` starts it. A guild gets more and more members who are strangers; at each size the
bot is killed, and its start and its memory are measured. Then 200 strangers a second leave and join, beside a member
who uses a command.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import psycopg

from app.supervisor import single_instance
from benchmarks.attacks import within
from benchmarks.support.rounds import goal, options
from setting_checks import libpq_url
from tests.support.product import DAY, Machine, members_of_session, running

NAME = "strangers"
GUILD, PERSON = "Base Builders", "carol"
SIZES, QUICK_SIZES = (1_000, 100_000, 1_000_000), (1_000, 20_000)
AT_ONCE = 20_000
"""Members that one control call adds."""
A_SECOND, SECONDS = 200, 30
"""Joins and leaves together."""
OUTSTANDING = 8
"""Joins and leaves that the sandbox has not answered yet; a slow machine then does fewer a second."""
SETTLED_SECONDS = 10.0
"""How long a bot that is ready is left alone before its memory counts."""
ASK_EVERY = 0.5
MOST_MB, MOST_SECONDS, MOST_MS = 100, 60, 1_000


@dataclass
class Start:
    """One start of the bot beside so many strangers: seconds to its first answer, megabytes of its process."""

    strangers: int
    seconds: float
    megabytes: float


@dataclass
class Churn:
    """Measurements while strangers came and went: milliseconds of answers, the bot's processor time and growth."""

    events: int = 0
    seconds: float = 0.0
    answers: list[float] = field(default_factory=list[float])
    faults: list[str] = field(default_factory=list[str])
    cpu: float = 0.0
    grown: float = 0.0
    rows: int = 0
    """Rows of members that remained in the database."""


class Town:
    """The running product and the guild that fills up."""

    def __init__(self, machine: Machine, client: aiohttp.ClientSession) -> None:
        self._machine, self._client = machine, client
        self.first = self.last = 0
        self.strangers = 0

    async def control(self, path: str, **body: Any) -> Any:
        """Call the sandbox's control; an answer of 400 or more is RuntimeError."""
        return await control(self._client, self._machine.product.sandbox, path, body)

    async def fill(self, strangers: int) -> None:
        """Add members until there are so many strangers."""
        while self.strangers < strangers:
            count = min(AT_ONCE, strangers - self.strangers)
            crowd = await self.control("guilds", action="populate", guild=GUILD, count=count)
            self.first, self.last = int(crowd["first"]), int(crowd["last"])
            self.strangers += count

    async def answered(self) -> float:
        """Use a command and return the seconds until its answer. Raises RuntimeError without one."""
        began = time.monotonic()
        await self.control("interactions", guild=GUILD, user=PERSON, kind="command", name="help")
        return time.monotonic() - began

    def bot(self) -> int:
        """Return the id of the bot's process. Raises LookupError while there is none."""
        assert self._machine.process is not None
        for pid in members_of_session(self._machine.process.pid):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended
                continue
            if words[1:3] == [b"-m", b"bot"]:
                return pid
        raise LookupError("no bot runs")

    async def restart(self) -> Start:
        """Kill the bot; its supervisor starts another."""
        os.kill(self.bot(), signal.SIGKILL)
        return await self.started(time.monotonic())

    async def started(self, began: float) -> Start:
        """Wait for the first answer of the bot."""
        while True:
            try:
                await self.answered()
                break
            except RuntimeError:
                await asyncio.sleep(0.1)
        seconds = time.monotonic() - began
        await asyncio.sleep(SETTLED_SECONDS)
        return Start(self.strangers, seconds, resident(self.bot()))

    async def churn(self, seconds: float) -> Churn:
        """Let strangers leave and join again at A_SECOND, and use a command meanwhile."""
        seen = Churn(rows=-self._rows())
        bot = self.bot()
        before, cpu = resident(bot), processor(bot)
        over = asyncio.Event()
        asking = asyncio.create_task(self._ask(seen, over))
        began = time.monotonic()
        calls = set[asyncio.Task[Any]]()
        people = range(self.first, self.last + 1)
        while (late := time.monotonic() - began) < seconds:
            # The sandbox is not flooded: otherwise a command would wait in its queue, and not for the bot.
            while seen.events < late * A_SECOND and len(calls) < OUTSTANDING:
                # Of each hundred, all leave and then all come back.
                block, step = divmod(seen.events, 200)
                who = people[(block * 100 + step % 100) % len(people)]
                call = self.control("members", guild=GUILD, user=who, action="leave" if step < 100 else "join")
                calls.add(task := asyncio.create_task(call))
                task.add_done_callback(calls.discard)
                seen.events += 1
            await asyncio.sleep(0.005)
        await asyncio.gather(*calls)
        seen.seconds = time.monotonic() - began
        over.set()
        await asking
        await asyncio.sleep(SETTLED_SECONDS)
        seen.cpu, seen.grown = processor(bot) - cpu, resident(bot) - before
        seen.rows += self._rows()
        return seen

    async def _ask(self, seen: Churn, over: asyncio.Event) -> None:
        while not over.is_set():
            try:
                seen.answers.append(1000 * await self.answered())
            except RuntimeError as fault:
                seen.faults.append(str(fault)[:100])
            await asyncio.sleep(ASK_EVERY)

    def _rows(self) -> int:
        now = single_instance.running(self._machine.product.data_dir)
        assert now is not None
        assert now.database_url
        with psycopg.connect(libpq_url(now.database_url)) as database:
            row = database.execute("SELECT count(*) FROM member").fetchone()
        assert row is not None
        return int(row[0])


async def control(client: aiohttp.ClientSession, sandbox: str, path: str, body: Mapping[str, Any]) -> Any:
    """Call a sandbox's control; an answer of 400 or more is RuntimeError."""
    async with client.post(f"{sandbox}/control/{path}", json=body) as answer:
        if answer.status >= 400:
            raise RuntimeError(f"{answer.status} {await answer.text()}")
        return json.loads(await answer.read())


def resident(pid: int) -> float:
    """Return the memory of a process in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def processor(pid: int) -> float:
    """Return the seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(machine: Machine, sizes: Sequence[int], seconds: float) -> tuple[list[Start], Churn]:
    """Return the starts, the first without strangers, and what the joins and leaves did."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as client:
        town = Town(machine, client)
        await town.started(time.monotonic())
        starts = list[Start]()
        for strangers in (0, *sizes):
            await town.fill(strangers)
            starts.append(await town.restart())
            print(row(starts[-1]), file=sys.stderr, flush=True)
        return starts, await town.churn(seconds)


def row(one: Start) -> str:
    """Return one row of the table."""
    return f"| {one.strangers:,} | {one.seconds:.1f} | {one.megabytes:.1f} |"


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = options("sizes.strangers", __doc__, quick="at most 20,000 strangers, 10 seconds of joins and leaves")
    parser.add_argument("--strangers", type=int, nargs="+", metavar="N", help="how many, one size after the other")
    given = parser.parse_args(arguments)
    sizes = sorted(given.strangers or (QUICK_SIZES if given.quick else SIZES))
    with TemporaryDirectory(prefix="hf-bench-", dir="/tmp") as directory, running(Path(directory), DAY) as machine:
        starts, churn = asyncio.run(measure(machine, sizes, 10 if given.quick else SECONDS))
    print("\n| strangers | first answer after so many seconds | MB of the bot |\n|---|---|---|")
    for one in starts:
        print(row(one))
    print(
        f"\n{churn.events} joins and leaves in {churn.seconds:.1f} s, {len(churn.answers)} commands: half answered "
        f"within {median(churn.answers):.0f} ms, 95 of 100 within {within(churn.answers):.0f}, all within "
        f"{max(churn.answers):.0f}; the bot's processor time {1e6 * churn.cpu / churn.events:.0f} µs an event, "
        f"{churn.grown:+.1f} MB, {churn.rows:+d} rows. {sorted(set(churn.faults))[:3] or ''}\n"
    )
    goal(
        NAME,
        "strangers cost the bot so many MB",
        max(one.megabytes for one in starts) - starts[0].megabytes,
        most=MOST_MB,
    )
    goal(NAME, "first answer of a started bot after so many s", max(one.seconds for one in starts), most=MOST_SECONDS)
    goal(NAME, "a command beside joins and leaves: all within so many ms", max(churn.answers), most=MOST_MS)
    goal(NAME, "commands without an answer", len(churn.faults), most=0)
    goal(NAME, "rows that strangers left", churn.rows, most=0)


if __name__ == "__main__":
    main(sys.argv[1:])
