"""Many guilds at once, nodes far away, and one hostile guild: `python -m benchmarks.guilds [--quick]`.

Three parts, each with its own database and product processes:

- sweeps: 1 to 10,000 guilds of ten members and ten rules, and one guild of 100,000, over nodes 50 and 150 ms away;
- neighbours: from a transfer to the request for its role in honest guilds while sweeps go on, without and with a guild
  whose rules, contracts and refusals are made to cost as much as they can;
- hangs: a node that swallows everything for 16 s again and again, and the first look after it.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from benchmarks import roles
from benchmarks.support import community, hostile_guild
from benchmarks.support.longest_step import longest_step
from benchmarks.support.nft_chain import NftChain, nft_chain, wallet
from benchmarks.support.rounds import goal, options, prepared, said_by
from models import transaction
from services.core import queue
from services.runtime import garbage_collection
from services.runtime.task_cancellation import stop
from tests.support.distant_node import far, hang, tally

GUILDS = "many guilds"
RULES = 10
MEMBERS = 10
SIZES = ((1, MEMBERS), (100, MEMBERS), (1_000, 4), (1_000, MEMBERS), (10_000, MEMBERS), (1, 100_000))
QUICK = ((1, MEMBERS), (100, MEMBERS), (1_000, 4))
NEAR, FAR = 50, 150
"""Milliseconds from the product to a node and back."""
ONE_IN = 16
"""Of so many answers of a made-up collection, one says "holds one"."""
# (argument + own address) modulo ONE_IN is 0: a balance that everybody can work out, and no storage to fill.
PARITY = "0x6004353001600f161560005260206000f3"
MADE_UP = 0xC0DE << 144
HANG_SECONDS = 16.0
FLOOD_EVERY = 5
"""Transfers in honest guilds between two blocks that the hostile guild fills with logs."""


@dataclass(frozen=True)
class MeasuredSweep:
    """One sweep over all guilds."""

    seconds: float
    looks: int
    requests: int
    wrong: int
    step: float
    """The longest step of the event loop, in milliseconds of processor time."""

    def each(self, checks: int) -> float:
        """Requests for 1,000 checks."""
        return self.requests / checks * 1000


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = options("guilds", (__doc__ or "").splitlines()[0], quick="up to 1,000 guilds, fewer transfers and hangs")
    parser.add_argument("--only", choices=("sweeps", "neighbours", "hangs"), help="one part alone")
    parser.add_argument(
        "--kind", action="append", choices=[*hostile_guild.KINDS], help="neighbours beside these kinds of harm"
    )
    parser.add_argument("--transfers", type=int, help="transfers beside each kind of neighbour")
    given = parser.parse_args(arguments)
    parts = (given.only,) if given.only else ("sweeps", "neighbours", "hangs")
    if "sweeps" in parts:
        sweeps(QUICK if given.quick else SIZES)
    if "neighbours" in parts:
        neighbours(given.transfers or (30 if given.quick else 100), given.kind or ["mixture"])
    if "hangs" in parts:
        hangs(3 if given.quick else 100)


# Sweeps.


def sweeps(sizes: Sequence[tuple[int, int]]) -> None:
    """Measure every size, at both distances."""
    print(f"\nOne sweep, {RULES} rules a guild, no contract in two guilds\n")
    print("| guilds × members | ms away | s, all new | s, nothing new | looks | requests a 1,000 checks | wrong "
          "| longest step, ms |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    found: dict[tuple[int, int, int], MeasuredSweep] = {}
    with nft_chain() as node:
        node.rpc("anvil_mine", "0x40")
        for guilds, members in sizes:
            make_up(node, guilds)
            for away in (NEAR, FAR):
                first, second = _sweeps_of(node, guilds, members, away)
                found[guilds, members, away] = second
                checks = guilds * members * RULES
                print(
                    f"| {guilds:,} × {members:,} | {away} | {first.seconds:.1f} | {second.seconds:.1f} "
                    f"| {second.looks} | {second.each(checks):.2f} | {first.wrong + second.wrong} "
                    f"| {max(first.step, second.step):.0f} |",
                    flush=True,
                )
    print()
    if small := found.get((1_000, 4, NEAR)):
        goal(GUILDS, "seconds for 1,000 guilds × 4 members × 10 rules, 50 ms away", small.seconds, most=5)
        alone = _alone(4_000)
        more = small.each(40_000) - alone.each(40_000)
        goal(GUILDS, "requests a 1,000 checks more than one guild of the same size", more, most=0.2)
    if large := found.get((10_000, MEMBERS, NEAR)):
        goal(GUILDS, "seconds for 10,000 guilds × 10 members, 50 ms away", large.seconds, most=60)
    goal(GUILDS, "members with a wrong answer", sum(one.wrong for one in found.values()), most=0)
    goal(GUILDS, "longest step of the event loop, ms", max(one.step for one in found.values()), most=50)


def _alone(members: int) -> MeasuredSweep:
    """Measure one guild with as many members, for comparison."""
    with nft_chain() as node:
        node.rpc("anvil_mine", "0x40")
        make_up(node, 1)
        return _sweeps_of(node, 1, members, NEAR)[1]


def make_up(node: NftChain, guilds: int) -> None:
    """Put the made-up collections of so many guilds on the chain."""
    calls = [(contract, PARITY) for at in range(guilds) for contract in contracts_of(at)]
    for first in range(0, len(calls), 2_000):
        node.batch("anvil_setCode", calls[first : first + 2_000])
    node.refresh()


def contracts_of(guild: int) -> list[str]:
    """Return the contracts in a guild's rules."""
    return [f"0x{MADE_UP + guild * RULES + at:040x}" for at in range(RULES)]


def holds(contract: str, owner: str) -> bool:
    """Return whether a made-up collection says that the owner has one."""
    return (int(contract, 16) + int(owner, 16)) % ONE_IN == 0


def _sweeps_of(node: NftChain, guilds: int, members: int, away: int) -> tuple[MeasuredSweep, MeasuredSweep]:
    with ExitStack() as stack:
        url = stack.enter_context(far(node.url, away))
        database = stack.enter_context(community.database())
        stack.enter_context(node.mining())
        said = said_by("benchmarks.guilds", "sweeps", database, url, str(guilds), str(members))
        first, second = (MeasuredSweep(**one) for one in said)
        return first, second


async def sweeps_here(database: str, node: str, guilds: int, members: int) -> None:
    """Run the product's part: everybody is due twice, the second time with nothing new."""
    async with community.product(database, [node]):
        servers = await community.people(guilds * members, servers=guilds)
        rights = await _many_rules(servers)
        async with community.jobs("reconciler"):
            garbage_collection.freeze()
            said = [await _sweep(node, servers, guilds * members, rights)]
            await community.written()
            said.append(await _sweep(node, servers, guilds * members, rights))
    print(json.dumps([one.__dict__ for one in said]))


async def _many_rules(servers: Sequence[int]) -> dict[int, list[tuple[str, str]]]:
    """Create ten rules a server in a few statements; return by server its contracts and roles."""
    made: dict[int, list[tuple[str, str]]] = {}
    rows: list[dict[str, Any]] = []
    for at, server in enumerate(servers):
        pairs = [(c, str(community.ROLE + at * RULES + n)) for n, c in enumerate(contracts_of(at))]
        made[server] = pairs
        rows += [community.rule_row(server, contract, role) for contract, role in pairs]
    async with transaction() as db:
        await community.add_rules(db, rows)
    return made


_LEFT = """
    SELECT count(*), max(attempts) FROM due
    WHERE attempts > 0 OR claimed_until > now() OR due_at <= now() + interval '40 seconds'
"""
"""Members whom the sweep has not answered yet. A member who was put off for seconds is one of them. A second look a
minute later, in case a node lagged, does not count."""


async def _sweep(
    node: str, servers: Sequence[int], members: int, rights: dict[int, list[tuple[str, str]]]
) -> MeasuredSweep:
    tally(node, "DELETE")
    began = time.perf_counter()
    await community.begin_sweep()
    looks = 0
    with longest_step() as step:
        while True:
            async with transaction() as db:
                row = (await db.execute(_LEFT)).one()
            if not row[0]:
                break
            looks = max(looks, row[1] or 0)
            if time.perf_counter() - began > 600:
                raise SystemExit(f"{row[0]} members are still due after ten minutes")
            await asyncio.sleep(0.05)
    seconds = time.perf_counter() - began
    requests = tally(node)["requests"]
    return MeasuredSweep(seconds, looks + 1, requests, await _wrong(servers, members, rights), step.milliseconds)


async def _wrong(servers: Sequence[int], members: int, rights: dict[int, list[tuple[str, str]]]) -> int:
    """Return how many pairs of member and role differ from the collections' answers."""
    expected = {
        (server, str(community.PERSON + n), role)
        for n in range(1, members + 1)
        for server in (servers[n % len(servers)],)
        for contract, role in rights[server]
        if holds(contract, wallet(n - 1))
    }
    async with transaction() as db:
        rows = await db.execute("SELECT server_id, discord_id, role_id FROM \"grant\" WHERE state <> 'lost'")
        there = {(row[0], row[1], row[2]) for row in rows}
    return len(expected ^ there)


# Neighbours.


def neighbours(transfers: int, kinds: Sequence[str], guilds: int = 100) -> None:
    """Measure from the transfer to the role's request in honest guilds, without and with a hostile guild, in turns."""
    print(f"\nFrom a transfer's block to the request for its role, {guilds} honest guilds, sweeps all the time\n")
    print("| a hostile guild | half within, ms | 95 of 100 within, ms | most, ms | 95 of 100, by the figure without |")
    print("|---|---|---|---|---|")
    names = ["", *kinds]
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(2):
        for name, samples in taken.items():
            samples += _neighbours(transfers // 2, guilds, name)
    within = {name: quantiles(samples, n=20)[-1] for name, samples in taken.items()}
    for name, samples in taken.items():
        cells = f"{median(samples):.0f} | {within[name]:.0f} | {max(samples):.0f} | {within[name] / within['']:.2f}"
        print(f"| {name or 'none'} | {cells} |", flush=True)
    print()
    for name in kinds:
        what = f"log to role beside a hostile guild ({name}), 95 of 100, by the figure without"
        goal(GUILDS, what, within[name] / within[""], most=2)


def _neighbours(transfers: int, guilds: int, name: str) -> list[float]:
    kind = hostile_guild.KINDS[name] if name else hostile_guild.Kind()
    with ExitStack() as stack:
        node = stack.enter_context(nft_chain())
        node.fill(1, collections=1, supply=1)
        evil = hostile_guild.deploy(node, MEMBERS, name) if name else None
        node.refresh()
        url = stack.enter_context(far(node.url, NEAR))
        database = stack.enter_context(community.database())
        discord = stack.enter_context(roles.fake_discord())
        if kind.refused:
            hostile_guild.refuse(discord, kind.refused)
        tarpit = stack.enter_context(hostile_guild.tarpit()) if kind.traits else ""
        numbers = [str(guilds), str(transfers), json.dumps(evil) if evil else "", tarpit]
        places = [database, url, discord, node.contracts[0]]
        process = stack.enter_context(prepared("benchmarks.guilds", "engine", *places, *numbers))
        if kind.previews:
            stack.enter_context(hostile_guild.previews(database, url, node.contracts[0]))
        taken: list[float] = []
        for number in range(1, transfers + 1):
            if evil and number % FLOOD_EVERY == 1:
                hostile_guild.act(node, evil)
            before = roles.tally(discord)["honest"]
            # The node and this process share one clock; the transfer is in a block when mint returns.
            node.mint(node.contracts[0], 1 + number, [wallet(guilds * MEMBERS + number - 1)])
            moment = time.monotonic()
            arrived = roles.tally(discord, honest=len(before) + 1)["honest"][len(before)]
            taken.append(1000 * max(0.0, arrived - moment))
        process.communicate("\n", timeout=60)
        return taken


async def engine_here(
    database: str, node: str, discord: str, contract: str, guilds: int, transfers: int, evil: str, tarpit: str
) -> None:
    """Run the product's part: reconciler, role writer, followers; sweep after sweep; a member for each transfer."""
    more = {"IPFS_GATEWAY_URL": tarpit} if tarpit else {}
    async with community.product(database, [node], DISCORD_API_URL=discord, FOLLOW_SECONDS="0.1", **more):
        servers = await community.people(guilds * MEMBERS + transfers, servers=guilds)
        async with transaction() as db:
            await community.add_rules(
                db,
                [community.rule_row(server, contract, str(community.ROLE + at)) for at, server in enumerate(servers)],
            )
        if evil:
            await hostile_guild.move_in(json.loads(evil), MEMBERS, contract)
        async with community.jobs("reconciler", "writer", "followers"):
            await asyncio.sleep(3)
            sweeps_go_on = asyncio.create_task(_sweeps_without_end())
            await community.told_to_end()
            await stop(sweeps_go_on)


async def _sweeps_without_end() -> None:
    while True:
        await community.begin_sweep()
        await asyncio.sleep(2)


# Hangs.


def hangs(count: int) -> None:
    """Measure the first reconcile after each of `count` hangs of both nodes, with 100 guilds waiting."""
    with ExitStack() as stack:
        node = stack.enter_context(nft_chain())
        node.rpc("anvil_mine", "0x40")
        make_up(node, 100)
        stack.enter_context(node.mining())
        first, second = (stack.enter_context(far(node.url, NEAR)) for _ in range(2))
        database = stack.enter_context(community.database())
        taken: list[float] = said_by("benchmarks.guilds", "hangs", database, first, second, str(count))
    print(f"\n{count} hangs of {HANG_SECONDS:g} s with 100 guilds waiting: the first look after each\n")
    print("| half within, s | most, s | wrong |\n|---|---|---|")
    print(f"| {median(taken):.2f} | {max(taken):.2f} | {sum(one < 0 for one in taken)} |\n", flush=True)
    goal(GUILDS, "first looks after a hang that were not right", sum(one < 0 for one in taken), most=0)


async def hangs_here(database: str, first: str, second: str, count: int) -> None:
    """Keep everybody due while both nodes never answer, then reconcile each guild once."""
    guilds = 100
    async with community.product(database, [first, second]):
        servers = await community.people(guilds, servers=guilds)
        rights = await _many_rules(servers)
        taken: list[float] = []
        async with community.jobs("reconciler"):
            await _sweep(first, servers, guilds, rights)
            await community.written()
            for _ in range(count):
                for url in (first, second):
                    hang(url, HANG_SECONDS)
                ends = time.monotonic() + HANG_SECONDS
                while time.monotonic() < ends:
                    async with transaction() as db:
                        await queue.mark_all(db, queue.CHANGED)
                    await asyncio.sleep(1)
                async with transaction() as db:
                    await db.execute("DELETE FROM due")
                swept = await _sweep(first, servers, guilds, rights)
                taken.append(swept.seconds if swept.looks == 1 and not swept.wrong else -1.0)
    print(json.dumps(taken))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["sweeps", database, node, guilds, members]:
            asyncio.run(sweeps_here(database, node, int(guilds), int(members)))
        case ["engine", database, node, discord, contract, guilds, transfers, evil, tarpit]:
            asyncio.run(engine_here(database, node, discord, contract, int(guilds), int(transfers), evil, tarpit))
        case ["hangs", database, first, second, count]:
            asyncio.run(hangs_here(database, first, second, int(count)))
        case _:
            main(sys.argv[1:])
