"""Giving roles in 1, 4 and 8 guilds at Discord's limits, beside nextcord and discord.py: `python -m benchmarks.roles`.

Alone, `python -m benchmarks.roles write DATABASE URL GUILDS EACH` is the product's writer with that many roles to give.
"""

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from benchmarks.support import community
from benchmarks.support.install_peers import python_of
from benchmarks.support.nft_chain import ROOT
from benchmarks.support.rounds import environment, goal, options, serving
from jobs.role_writer import RoleWriter
from models import transaction
from sandbox.discord.answers.limits import GLOBAL_LIMIT
from sandbox.discord.rest.members import MEMBER_ROLE_WRITES
from services.roles.outbox import INTENT_CHANNEL
from services.runtime.postgres_listen import Listener
from services.runtime.task_cancellation import stop

ROLES = "giving roles"
GUILDS = (1, 4, 8)
WINDOW, SECONDS = MEMBER_ROLE_WRITES.requests, MEMBER_ROLE_WRITES.seconds


@dataclass(frozen=True)
class Outcome:
    """What the fake Discord received in one run."""

    guilds: int
    wanted: int
    accepted: int
    requests: int
    refused: int
    reads: int
    different: int
    seconds: float

    @property
    def share(self) -> float:
        """The part of the allowed speed: the least time for the accepted writes, divided by the time taken."""
        windows = -(-self.accepted // (WINDOW * self.guilds))
        last = self.accepted - (windows - 1) * WINDOW * self.guilds
        return ((windows - 1) * SECONDS + last / GLOBAL_LIMIT) / self.seconds

    @property
    def each(self) -> float:
        """Requests for each role to be given, without those refused for their pace."""
        assert self.different == self.wanted, f"{self.different} of {self.wanted} roles were given"
        return (self.requests - self.refused + self.reads) / self.wanted

    @property
    def refused_per_thousand(self) -> float:
        """429s in 1,000 requests."""
        return self.refused / self.requests * 1000


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    given = options("roles", __doc__, quick="half as many roles").parse_args(arguments)
    each = 2 * WINDOW if given.quick else 4 * WINDOW
    here = [sys.executable, "-m", "benchmarks.roles", "write"]
    peer = "benchmarks/peers/roles.py"
    print(f"\nGiving {each} roles in each guild, at {WINDOW} in {SECONDS:g} s a guild and {GLOBAL_LIMIT} a second\n")
    print("| client | guilds | share of what the limits allow | given | requests | reads | 429s per 1,000 |")
    print("|---|---|---|---|---|---|---|")
    found: list[Outcome] = []
    with fake_discord() as url:
        for guilds in GUILDS:
            numbers = [str(guilds), str(each)]
            with community.database() as database:
                found.append(run("Holdfast", [*here, database, url, *numbers], url, guilds, each))
            for name, python, module in (
                ("nextcord", sys.executable, "nextcord"), ("discord.py", python_of("discord_py"), "discord"),
            ):  # fmt: skip
                run(name, [python, peer, module, url, *numbers], url, guilds, each)
    print()
    for one in found:
        goal(ROLES, f"share of what the limits allow, {one.guilds} guilds", one.share, least=0.95)
    goal(ROLES, "requests for each difference", max(one.each for one in found), most=1)
    goal(ROLES, "429s per 1,000 requests", max(one.refused_per_thousand for one in found), most=5)


def run(name: str, command: Sequence[str], url: str, guilds: int, each: int) -> Outcome:
    """Run one client until it is done, or for at most three times as long as the limits require."""
    tally(url, "DELETE")
    most = 3 * (each / WINDOW) * SECONDS + 60
    process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL)
    try:
        process.wait(most)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    said = tally(url)
    times = said.pop("accepted")
    said.pop("honest")
    seconds = times[-1] - times[0] if len(times) > 1 else most
    outcome = Outcome(guilds, guilds * each, len(times), seconds=seconds, **said)
    share = f"{outcome.share:.1%}" if outcome.different == outcome.wanted else "gave up"
    print(
        f"| {name} | {guilds} | {share} | {outcome.different} of {outcome.wanted} | {outcome.requests} "
        f"| {outcome.reads} | {outcome.refused_per_thousand:.1f} |",
        flush=True,
    )
    return outcome


def fake_discord() -> AbstractContextManager[str]:
    """The fake Discord's address; it ends with the block."""
    return serving("benchmarks.support.fake_discord")


def tally(url: str, method: str = "GET", *, least: int = 0, honest: int = 0) -> dict[str, Any]:
    """Return the fake Discord's tally, once it has so many writes, and so many in guilds without refusals."""
    asked = urllib.request.Request(f"{url}/tally?least={least}&honest={honest}", method=method)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return dict(json.loads(answer.read()))


async def write(database: str, url: str, guilds: int, each: int) -> None:
    """Run the product's writer, from the commit of the role changes until none is left."""
    async with community.product(database, DISCORD_API_URL=url):
        servers = await community.people(guilds * each, servers=guilds)
        called = asyncio.Event()
        tasks = [asyncio.create_task(part.run()) for part in (Listener({INTENT_CHANNEL: called}), RoleWriter(called))]
        try:
            # The only advisory lock: changes committed before the writer has it would be read back first.
            await until("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted)")
            await intend(servers)
            await until("SELECT NOT EXISTS (SELECT 1 FROM \"grant\" WHERE state <> 'held')")
        finally:
            await stop(*tasks)


async def intend(servers: list[int]) -> None:
    """Intend the same role for every member, as the ledger does."""
    async with transaction() as db:
        await db.execute(
            'INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, '
            "intended_at, next_at, attempts, created_at, updated_at) SELECT server_id, discord_id, :role, '{}', "
            "'giving', false, '{}', now(), now(), 0, now(), now() FROM member WHERE server_id = ANY(:servers)",
            {"role": str(community.ROLE), "servers": servers},
        )
        await db.execute("SELECT pg_notify(:channel, '')", {"channel": INTENT_CHANNEL})


async def until(question: str) -> None:
    """Wait until the query returns true."""
    while True:
        async with transaction() as db:
            if (await db.execute(question)).scalar_one():
                return
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        asyncio.run(write(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
    else:
        main(sys.argv[1:])
