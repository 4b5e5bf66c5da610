"""`make soak`: many seeds of a world in which everything goes wrong, and the verdict on each.

`ARGS="--seeds 1-20 --seconds 120"`; a failed seed is reported with its faults, and its logs are kept.
"""

import argparse
import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx
from sqlmodel import col, select

import models
from gateways import close_gateways
from models import Due, Grant, Schedule, now, transaction
from services.triggers import sweep
from settings import CALLBACK_PATH, settings
from tests.conftest import ROOT, free_port, running_sandbox, temporary_dir
from tests.system.soak import distant_services, judge
from tests.system.soak.chaos import Chaos, Pace
from tests.system.soak.expected_roles import Pair
from tests.system.soak.hostile_guild import HostileTenant
from tests.system.soak.machine import Machine
from tests.system.soak.rules import GUILDS, first_rules
from tests.system.soak.visitor import Visitor
from tests.system.soak.world import World

STANDSTILL = 150.0
"""Seconds without any change while everything works, after which nothing will change any more. Sweeps come all the
time and take up waiting members, so a busy machine delays the verdict but does not change it."""
SWEEP_SECONDS, FOLLOW_SECONDS = 20, 1
ALLOWANCES = {"opensea": 6_000, "alchemy": 625_000}
"""What the indexes answer in one seed: ten times an hour's or a month's free plan. Sweeps come every SWEEP_SECONDS and
not daily, so a seed on a busy machine would use up a plan, and removals would wait for the second index for weeks."""
TOLD_EVERY = 15.0
KEPT = ROOT / "data" / "soak"


async def soak(
    seeds: Sequence[int], sandbox: str, directory: Path, pace: Pace, say: Callable[[str], None]
) -> list[str]:
    """Run one seed after another on one machine; return the faults in sentences, none if the promise is kept."""
    with distant_services.nodes(sandbox) as nodes:
        return await _soak_on(seeds, sandbox, directory, pace, say, nodes)


async def _soak_on(
    seeds: Sequence[int],
    sandbox: str,
    directory: Path,
    pace: Pace,
    say: Callable[[str], None],
    nodes: Mapping[str, str],
) -> list[str]:
    environment = {
        **nodes,
        "DATA_DIR": str(directory), "SANDBOX_PORT": str(urlsplit(sandbox).port), "PORT": str(free_port()),
        "PUBLIC_URL": "", "REDIS_URL": "", "HOLDFAST_SUPERVISED": "1", "PYTHONWARNINGS": "ignore",
        "SWEEP_SECONDS": str(SWEEP_SECONDS), "FOLLOW_SECONDS": str(FOLLOW_SECONDS),
    }  # fmt: skip
    machine = Machine(directory, environment)
    before = dict(os.environ)
    os.environ.update(environment, DATABASE_URL=machine.url)
    settings.cache_clear()
    await close_gateways()  # the settings of an earlier test name another sandbox
    await models.use(machine.url)
    try:
        async with httpx.AsyncClient(base_url=sandbox, timeout=120) as control:
            # A seed uses up an hour's allowance of free plans, and no seed is to wait because of an earlier one.
            limits = (await control.get("/control/limits")).raise_for_status().json()
            (await control.put("/control/limits", json={"strict": limits["strict"]})).raise_for_status()
            for index, left in ALLOWANCES.items():
                allowance = {"target": index, "left": left, "seconds": 3600}
                (await control.put("/control/limits", json=allowance)).raise_for_status()
            # As an operator does at Discord: sign-ins return only to registered addresses.
            callback = settings().public_url + CALLBACK_PATH
            (await control.post("/control/application", json={"redirect_uris": [callback]})).raise_for_status()
            wrong: list[str] = []
            for seed in seeds:
                random = Random(seed)
                told = await _soak(World(control, random), machine, random, pace, say)
                wrong += [f"seed {seed}: {one}" for one in told]
            return wrong
    finally:
        await close_gateways()
        await models.use(None)
        machine.stop()
        os.environ.clear()
        os.environ.update(before)
        settings.cache_clear()


async def _soak(world: World, machine: Machine, random: Random, pace: Pace, say: Callable[[str], None]) -> list[str]:
    await world.control.delete("/control/faults")
    since = await _next_request(world)
    machine.start("bot")
    await world.build(GUILDS, pace.members // GUILDS)
    machine.start_all()
    await world.meet()
    visitor = Visitor(settings().public_url, world.owner["username"])
    await visitor.sign_in()
    for soak_rule in first_rules(world, random):
        await world.make_first(soak_rule)
    tenant = HostileTenant(world)
    await tenant.move_in()
    say("the world is there")
    chaos = Chaos(world, machine, visitor, tenant, random, pace, say)
    wrong = await chaos.run()
    wrong += await _quiet(world, say)
    wrong += await visitor.sees(world.soak_rules, [guild.server_id for guild in world.guilds])
    assert await world.read_chains() == world.holdings, "the mirror is the chain"
    requests = await _requests(world, since)
    done = judge.writes(requests, {guild.id for guild in world.guilds})
    await world.end()
    await tenant.end()
    say(f"{sum(write.gives for write in done)} roles were given, {sum(not write.gives for write in done)} taken; "
        f"deeds: {', '.join(f'{count} {name}' for name, count in chaos.done.most_common())}; "
        f"{visitor.unanswered} of {visitor.calls} calls met no web")  # fmt: skip
    return [
        *judge.faults(done, world.timeline, world.away, chaos.slow),
        *judge.refusals(requests),
        *wrong,
        *machine.ended(),
        *machine.unexpected(),
    ]


class _Standstill:
    """Detects that nothing changes any more, and sometimes reports what is awaited, while the chains go on."""

    def __init__(self, world: World, say: Callable[[str], None]) -> None:
        self.world, self.say = world, say
        self.seen: object = None
        self.since = self.told = time.monotonic()

    async def reached(self, state: object) -> bool:
        moment = time.monotonic()
        if state != self.seen:
            self.seen, self.since = state, moment
        if moment - self.told > TOLD_EVERY:
            self.told = moment
            await self.world.chains_go_on()
            for sentence in await _differences(self.world):
                self.say(f"waiting: {sentence}")
        return moment - self.since > STANDSTILL


async def _quiet(world: World, say: Callable[[str], None]) -> list[str]:
    """Wait until everybody has their roles and another sweep changes nothing; return the remaining faults."""
    began, standstill = time.monotonic(), _Standstill(world, say)
    while True:
        there, ledger = await world.roles_in_discord(), await _ledger(world)
        if there == world.right() == {pair for pair, state in ledger.items() if state == "held"}:
            break
        if await standstill.reached((there, ledger)):
            return await _differences(world)
        await world.approve()
        await asyncio.sleep(0.3)
    say(f"everybody has what is theirs, {time.monotonic() - began:.1f} s after the healing")
    since, asked = await _next_request(world), now()
    async with transaction() as db:
        await sweep.ask_for_sweep(db)
    while not await _swept_since(asked):
        if await standstill.reached(await _left()):
            return ["the sweep after the healing does not end", *await _differences(world)]
        await asyncio.sleep(0.3)
    more = judge.writes(await _requests(world, since), {guild.id for guild in world.guilds})
    return [f"the sweep changed what was right: {write}" for write in more]


async def _ledger(world: World) -> dict[Pair, str]:
    """Return the product's state of each role: held, being given, being taken."""
    async with transaction() as db:
        ours = [guild.server_id for guild in world.guilds]
        rows = (await db.exec(select(Grant).where(col(Grant.server_id).in_(ours)))).all()
    return {(row.discord_id, row.role_id): row.state for row in rows}


async def _left() -> tuple[datetime | None, int]:
    """Return the time of the current sweep, and how many members are still due in it."""
    async with transaction() as db:
        round_ = await sweep.progress(db)
    return round_.started_at, round_.left


async def _swept_since(moment: datetime) -> bool:
    async with transaction() as db:
        row = await db.get(Schedule, sweep.SCHEDULE)
    return row is not None and row.finished_at is not None and (row.started_at or row.finished_at) > moment


async def _next_request(world: World) -> int:
    return (await world.control.get("/control/requests", params={"since": 2**31})).json()["next"]


async def _requests(world: World, since: int) -> list[dict[str, Any]]:
    return (await world.control.get("/control/requests", params={"since": since})).json()["requests"]


async def _differences(world: World) -> list[str]:
    """Return the people who lack a role or have one too many, with the product's rows about it."""
    there, right = await world.roles_in_discord(), world.right()
    ledger = {pair for pair, state in (await _ledger(world)).items() if state == "held"}
    said: list[str] = []
    async with transaction() as db:
        for who, role in sorted((there ^ right) | (ledger ^ right)):
            pair = (who, role)
            grant = (await db.exec(select(Grant).where(Grant.discord_id == who, Grant.role_id == role))).first()
            row = await db.get(Due, ("member", f"{world.guild_of(who).server_id}:{who}"))
            said.append(
                f"{who} {role}: right {pair in right}, in Discord {pair in there}, ledger "
                f"{grant and grant.model_dump(exclude={'evidence'})}, due {row and row.model_dump()}"
            )
    return said


def main() -> int:
    """Read the command line and soak; return 1 when a seed found a fault."""
    parser = argparse.ArgumentParser(prog="make soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", default="1-5", help="a number, or the first and the last: 1-20")
    parser.add_argument("--seconds", type=float, default=90, help="how long each seed goes on")
    parser.add_argument("--members", type=int, default=50, help="how many people there are")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    pace = Pace(seconds=given.seconds, members=given.members, late_writes=True)
    bad: list[int] = []
    with running_sandbox(strict=True) as sandbox:
        for seed in range(int(first), int(last or first) + 1):
            bad += [seed] if _one(seed, sandbox, pace) else []
    print(f"seeds that failed: {bad}" if bad else "every seed kept the promise")
    return 1 if bad else 0


def _one(seed: int, sandbox: str, pace: Pace) -> bool:
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} seed {seed} {time.monotonic() - began:6.1f} s  {what}", flush=True)

    with temporary_dir() as directory:
        wrong = asyncio.run(soak([seed], sandbox, directory, pace, say))
        for sentence in wrong:
            say(f"WRONG: {sentence}")
        if wrong:
            kept = KEPT / str(seed)
            kept.mkdir(parents=True, exist_ok=True)
            for log in directory.glob("*.log"):
                shutil.copy(log, kept)
            say(f"the logs are in {kept.relative_to(ROOT)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
