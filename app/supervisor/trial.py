"""Start the database and the web for a moment, to check that this version works: `python -m app.supervisor.trial`.

Migrates the database. Neither the bot nor the jobs start, so no role changes, and the web listens on a free port of
this machine alone, so nobody reaches it.
"""

import asyncio
import os
import socket
import sys
from dataclasses import replace

from app.postgres.account import NoDatabaseAccount
from app.postgres.binaries import PostgresFailed
from app.supervisor.output import say
from app.supervisor.probe import answers_ok
from app.supervisor.processes import Web, make_plan
from app.supervisor.single_instance import AlreadyRunning
from app.supervisor.supervisor import ProcessPlan, StartFailed, Supervisor
from app.supervisor.system import unusable
from settings import Settings, SettingsError, load, version

PATIENCE = 90.0
"""Seconds for the web to answer /health once the database is up to date."""


def plan_of(settings: Settings, port: int) -> ProcessPlan:
    """Return the plan of a trial: the database and the web alone, so that the web is healthy without a bot."""
    plan = make_plan(settings, Web.BUILT)
    [web] = [program for program in plan.programs if program.name == "web"]
    alone = replace(web, without=web.without | {"HOLDFAST_SUPERVISED"})
    health = (port, "/health", settings.public_host, "localhost")
    return replace(plan, programs=(alone,), health=health, ready_text=f"{version()} answers /health")


async def try_out(plan: ProcessPlan, patience: float = PATIENCE) -> bool:
    """Start the plan, wait until its web answers, and stop it. Return whether it answered. Raises as Supervisor.run."""
    assert plan.health is not None
    supervisor = Supervisor(plan, say=say)
    running = asyncio.create_task(supervisor.run())
    database = asyncio.create_task(supervisor.database_is_up.wait())
    answered = False
    try:
        await asyncio.wait([running, database], return_when=asyncio.FIRST_COMPLETED)
        async with asyncio.timeout(patience):
            while not running.done() and not (answered := await answers_ok(*plan.health)):
                await asyncio.sleep(0.1)
    except TimeoutError:
        say(f"the web did not answer /health within {patience:g} s")
    finally:
        database.cancel()
        if not running.done():
            supervisor.stop()
        await running
    return answered


def main() -> int:
    """Return 0 if this version works with this machine's database and settings, 1 after printing why not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    # The web process reads its port and its host from here.
    os.environ |= {"PORT": str(port), "BIND": "127.0.0.1"}
    try:
        settings = load()
        return 0 if asyncio.run(try_out(plan_of(settings, port))) else 1
    except (SettingsError, AlreadyRunning, StartFailed, PostgresFailed, NoDatabaseAccount) as fault:
        say(str(fault))
        return 1
    except OSError as fault:
        say(unusable(fault))
        return 1


if __name__ == "__main__":
    sys.exit(main())
