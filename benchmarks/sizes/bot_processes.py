"""The effect of one bot process's end on another: `python -m benchmarks.sizes.bot_processes [--quick]`.

Three shards, each with a guild, are shared by two processes as on two machines. The one with two shards is killed while
a member of each guild uses a command again and again.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import psycopg

from benchmarks.sizes.strangers import control
from benchmarks.support import community
from benchmarks.support.nft_chain import ROOT
from benchmarks.support.rounds import goal, options
from setting_checks import libpq_url
from tests.conftest import running_sandbox, temporary_dir

NAME = "bot processes"
SHARDS = 3
PERSON = "carol"
QUIET_SECONDS, QUICK_SECONDS = 20.0, 5.0
"""How long both processes answer before one is killed."""
PATIENCE_SECONDS, UP_SECONDS = 90.0, 300.0
MOST_SECONDS, MOST_BACK = 3, 15
TOKEN = {"Authorization": "Bot sandbox-bot-token"}
ELSEWHERE = """
import runpy, socket
socket.gethostname = lambda: "elsewhere"
runpy.run_module("bot", run_name="__main__", alter_sys=True)
"""
"""A bot on another machine, by its name: it then cannot see whether its neighbour's process lives."""


@dataclass
class Guild:
    """A guild, the seconds of its answers, and the times at which a command had none."""

    name: str
    shard: int
    answers: list[float] = field(default_factory=list[float])
    unanswered: list[float] = field(default_factory=list[float])

    def forget(self) -> None:
        """Begin to measure, and drop earlier measurements."""
        self.answers.clear()
        self.unanswered.clear()


@dataclass
class ShardLoss:
    """The result: seconds until both guilds of the killed process answered, and the other guild's answer times."""

    shards_killed: int
    back: float
    slowest_before: float
    slowest: float
    answers: int
    unanswered: int
    twice: int
    """Interactions that were answered more than once."""
    identifies: int


class Sandbox:
    """The sandbox's control and request log."""

    def __init__(self, url: str, client: aiohttp.ClientSession) -> None:
        self._url, self._client = url, client

    async def control(self, path: str, **body: Any) -> Any:
        """Call the control; an answer of 400 or more is RuntimeError."""
        return await control(self._client, self._url, path, body)

    async def guilds(self) -> list[Guild]:
        """Return a guild with the bot on each shard, creating guilds until every shard has one."""
        found = dict[int, Guild]()
        while len(found) < SHARDS:
            name = f"Guild {time.time_ns()}"
            made = await self.control("guilds", action="create", guild=name, owner="ada", members=[PERSON])
            shard = (int(made["id"]) >> 22) % SHARDS
            if shard not in found:
                await self.control("guilds", action="add_bot", guild=name)
                found[shard] = Guild(name, shard)
            await asyncio.sleep(0.01)
        return [found[shard] for shard in sorted(found)]

    async def identifies_left(self) -> int:
        """Return how often the bot may still identify today."""
        async with self._client.get(f"{self._url}/discord/api/v10/gateway/bot", headers=TOKEN) as answer:
            return int((await answer.json())["session_start_limit"]["remaining"])

    async def answered_twice(self) -> int:
        """Return how many interactions were answered more than once."""
        async with self._client.get(f"{self._url}/control/requests", params={"since": 0}) as answer:
            lines = (await answer.json())["requests"]
        answers = Counter(line["path"] for line in lines if line["path"].endswith("/callback"))
        return sum(count > 1 for count in answers.values())

    async def ask(self, guild: Guild, over: asyncio.Event) -> None:
        """Use a command again and again, and record the seconds of each answer."""
        while not over.is_set():
            began = time.monotonic()
            try:
                await self.control("interactions", guild=guild.name, user=PERSON, kind="command", name="help", wait=10)
                guild.answers.append(time.monotonic() - began)
            except RuntimeError:
                guild.unanswered.append(began)
            await asyncio.sleep(0.1)


async def holders(database: psycopg.AsyncConnection[Any]) -> dict[int, int]:
    """Return the process of each connected shard."""
    rows = await database.execute(
        "SELECT id, holder FROM shard WHERE shards = %s AND holder IS NOT NULL AND session_id IS NOT NULL", [SHARDS]
    )
    return {shard: int(holder.split(":")[1]) for shard, holder in await rows.fetchall()}


async def measure(url: str, address: str, processes: Sequence[subprocess.Popen[bytes]], quiet: float) -> ShardLoss:
    """Wait until all is up, kill the process with the most shards, and wait until its guilds answer again."""
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as client,
        await psycopg.AsyncConnection.connect(libpq_url(address), autocommit=True) as database,
    ):
        sandbox = Sandbox(url, client)
        guilds = await sandbox.guilds()
        async with asyncio.timeout(UP_SECONDS):
            while set(held := await holders(database)) != set(range(SHARDS)) or len(set(held.values())) < 2:
                await asyncio.sleep(0.5)
        over = asyncio.Event()
        asking = [asyncio.create_task(sandbox.ask(guild, over)) for guild in guilds]
        async with asyncio.timeout(UP_SECONDS):
            while not all(guild.answers for guild in guilds):
                await asyncio.sleep(0.1)
        for guild in guilds:
            guild.forget()
        await asyncio.sleep(quiet)
        held = await holders(database)
        ((victim, _),) = Counter(held.values()).most_common(1)
        killed = [guild for guild in guilds if held[guild.shard] == victim]
        others = [guild for guild in guilds if held[guild.shard] != victim]
        slowest_before = max(seconds for guild in guilds for seconds in guild.answers)
        left = await sandbox.identifies_left()
        for guild in guilds:
            guild.forget()
        os.kill(victim, signal.SIGKILL)
        began = time.monotonic()
        next(one for one in processes if one.pid == victim).wait()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not all(guild.answers for guild in killed):
                await asyncio.sleep(0.02)
        back = time.monotonic() - began
        await asyncio.sleep(3)
        over.set()
        await asyncio.gather(*asking)
        answers = [seconds for guild in others for seconds in guild.answers]
        return ShardLoss(
            shards_killed=len(killed),
            back=back,
            slowest_before=slowest_before,
            slowest=max(answers),
            answers=len(answers),
            unanswered=sum(len(guild.unanswered) for guild in others),
            twice=await sandbox.answered_twice(),
            identifies=left - await sandbox.identifies_left(),
        )


def run(quiet: float) -> ShardLoss:
    """Bring up PostgreSQL, a sandbox and two bots, and measure."""
    with (
        temporary_dir() as directory,
        community.database() as database,
        running_sandbox(strict=False) as sandbox,
        ExitStack() as ending,
    ):
        environment = os.environ | {
            "DATABASE_URL": database,
            "SANDBOX_PORT": str(urlsplit(sandbox).port),
            "DATA_DIR": str(directory / "data"),
        }
        environment.pop("PUBLIC_URL", None)
        asyncio.run(_split(sandbox))
        processes = list[subprocess.Popen[bytes]]()
        for number, how in enumerate((["-m", "bot"], ["-c", ELSEWHERE])):
            log = ending.enter_context(Path(directory, f"bot-{number}.log").open("wb"))
            process = subprocess.Popen([sys.executable, *how], cwd=ROOT, env=environment, stdout=log, stderr=log)
            ending.callback(process.wait)
            ending.callback(process.kill)
            processes.append(process)
        return asyncio.run(measure(sandbox, database, processes, quiet))


async def _split(sandbox: str) -> None:
    async with aiohttp.ClientSession() as client:
        await Sandbox(sandbox, client).control("application", shards=SHARDS, max_concurrency=16)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = options("sizes.bot_processes", __doc__, quick="both processes answer for 5 s before one is killed")
    given = parser.parse_args(arguments)
    seen = run(QUICK_SECONDS if given.quick else QUIET_SECONDS)
    print(
        f"\nThe killed process had {seen.shards_killed} of {SHARDS} shards; its guilds answered again after "
        f"{seen.back:.1f} s, with {seen.identifies} identifies. The other process answered {seen.answers} commands, "
        f"all within {1000 * seen.slowest:.0f} ms ({1000 * seen.slowest_before:.0f} ms before), and left "
        f"{seen.unanswered} without an answer; {seen.twice} were answered more than once.\n"
    )
    goal(NAME, "the other process's answers: all within so many s", seen.slowest, most=MOST_SECONDS)
    goal(NAME, "commands that the other process left without an answer", seen.unanswered, most=0)
    goal(NAME, "guilds of the killed process are back after so many s", seen.back, most=MOST_BACK)
    goal(NAME, "identifies for it", seen.identifies, most=1)
    goal(NAME, "commands that were answered more than once", seen.twice, most=0)


if __name__ == "__main__":
    main(sys.argv[1:])
