"""Run the background work (`python -m jobs`), or ask for a sweep (`… sweep --now`).

`… rollup --rebuild` recomputes the counts behind the charts.
"""

import gc

if __name__ == "__main__":
    gc.disable()  # until `garbage_collection.freeze`

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable, Collection, Coroutine
from functools import partial
from typing import Any

from sqlalchemy.exc import OperationalError

from gateways import close_gateways, gateways
from jobs import alert_sender, proof_watch, rival_namer, scheduler
from jobs.census_taker import CensusTaker
from jobs.following.follower import Follower
from jobs.following.follower_turns import FollowerTurns
from jobs.following.head_listener import HeadListener
from jobs.following.solana_follower import SolanaFollower
from jobs.provider_monitor import ProviderMonitor
from jobs.reconciler import Reconciler
from jobs.role_writer import RoleWriter
from jobs.webhook_sender import WebhookSender
from models import transaction, use
from services.collections.census import census_queue
from services.core import queue, rollups
from services.core.queue import CHANNEL
from services.core.queue.worker_names import worker_name
from services.guilds import rate_shares
from services.health import readiness
from services.roles.outbox import INTENT_CHANNEL
from services.runtime import garbage_collection, logs, marketplace_limit_sharing, node_limit_sharing
from services.runtime.postgres_listen import Listener
from services.runtime.retries import run_forever
from services.servers import verified_counts
from services.triggers import sweep
from services.triggers.chain_cursor import COINS, WALLETS
from services.triggers.solana_poller import SOLANA
from services.triggers.transfer_poller import followed_chains
from settings import settings

PARTS = ("scheduler", "reconciler", "monitor", "writer", "followers", "proofs", "census")
PATIENCE_SECONDS = 0.05
Life = Callable[[], Coroutine[Any, Any, None]]


def lives(parts: Collection[str]) -> list[Life]:
    """Return the tasks of these parts. Each runs until it is cancelled, and restarts after an error."""
    due_called, intent_called, census_called = asyncio.Event(), asyncio.Event(), asyncio.Event()
    found: list[Life] = [
        Listener({CHANNEL: due_called, INTENT_CHANNEL: intent_called, census_queue.CHANNEL: census_called}).run,
        partial(rate_shares.keep_renewed, rate_shares.JOBS),
        marketplace_limit_sharing.keep,
        node_limit_sharing.run,
    ]
    if "reconciler" in parts:
        # Two workers, one of them for urgent members only, so that these never wait behind a sweep over a million.
        found += [Reconciler(due_called, patience=PATIENCE_SECONDS).run, Reconciler(due_called, least=queue.SEEN).run]
    if "writer" in parts:
        found.append(RoleWriter(intent_called).run)
    if "monitor" in parts:
        found += [ProviderMonitor().run, alert_sender.run, rival_namer.run, WebhookSender().run]
    if "followers" in parts:
        turns = FollowerTurns(worker_name())
        for chain in followed_chains(gateways()):
            if not settings().follow_pace(chain):
                continue
            called = asyncio.Event()
            found += [Follower(chain, turns, called).run]
            found += [Follower(chain, turns, kind=kind).run for kind in (WALLETS, COINS)]
            if gateways().heads.offered(chain):
                found.append(HeadListener(chain, called).run)
        if gateways().chains.endpoints(SOLANA) and settings().solana_follow_requests:
            found.append(SolanaFollower(turns).run)
    if "census" in parts:
        # Two, so that a chain with slow nodes does not delay the counts on other chains.
        found += [CensusTaker(f"{worker_name()}:{place}", census_called).run for place in range(2)]
    if "proofs" in parts:
        found.append(proof_watch.run)
    if "scheduler" in parts:
        found.append(scheduler.run)
    return [partial(run_forever, life) for life in found]


async def _run(parts: Collection[str]) -> None:
    """Run the parts until SIGTERM or SIGINT, which also end the wait for the migrations."""
    waiting = asyncio.create_task(readiness.until_migrated())
    _on_stop(waiting.cancel)
    try:
        await waiting
    except asyncio.CancelledError:
        return
    tasks = [asyncio.create_task(life()) for life in lives(parts)]
    running = asyncio.gather(*tasks)
    _on_stop(running.cancel)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await running
    finally:
        for task in tasks:
            # Cancel only once: the database client first cancels a running statement, and a second cancel during that
            # turns into "the connection is closed" instead of a cancellation. The part would then restart forever.
            if not task.cancelling():
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await close_gateways()
        await use(None)


def _on_stop(call: Callable[[], object]) -> None:
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, call)


async def _ask_for_sweep() -> int:
    done = "The sweep starts within a second, in the first jobs process that runs the schedule."
    return await _do(sweep.ask_for_sweep, done=done, otherwise="The sweep was not requested")


async def _rebuild() -> int:
    done = "The counts were rebuilt from the log, the ledger and the members."
    steps = rollups.begin, rollups.fill, verified_counts.rebuild
    return await _do(*steps, done=done, otherwise="The counts were not rebuilt")


async def _do(*steps: Callable[[Any], Awaitable[object]], done: str, otherwise: str) -> int:
    """Run each step in a transaction of the running product's database; print the result, return the exit code."""
    try:
        await use(readiness.running_database())
        for step in steps:
            async with transaction() as db:
                await step(db)
    except (readiness.NotRunning, OperationalError) as fault:
        reason = fault.orig if isinstance(fault, OperationalError) else fault
        print(f"{otherwise}: {str(reason).splitlines()[0]}", file=sys.stderr)
        return 1
    finally:
        await use(None)
    print(done)
    return 0


def main() -> int:
    """Parse the command line and run; return 1 when a sweep cannot be requested or the counts cannot be rebuilt."""
    parser = argparse.ArgumentParser(prog="python -m jobs", description="Run Holdfast's background work.")
    parser.add_argument("--without", action="append", default=[], choices=PARTS, help="leave a part out")
    commands = parser.add_subparsers(dest="command")
    sweeping = commands.add_parser("sweep", help="a sweep over all members")
    sweeping.add_argument("--now", action="store_true", required=True, help="begin it now")
    counting = commands.add_parser("rollup", help="the counts that the charts show")
    counting.add_argument("--rebuild", action="store_true", required=True, help="recompute everything from the log")
    given = parser.parse_args()
    garbage_collection.freeze()
    logs.set_up()
    if given.command == "sweep":
        return asyncio.run(_ask_for_sweep())
    if given.command == "rollup":
        return asyncio.run(_rebuild())
    if not settings().database_url:
        sys.exit("DATABASE_URL is not set: the jobs alone need the database that web and bot share.")
    logs.note_start("jobs")
    asyncio.run(_run({part for part in PARTS if part not in given.without}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
