"""`python -m jobs` runs clock, looker and writer; `python -m jobs sweep --now` asks for a round over everybody."""

import argparse
import asyncio
import contextlib
import logging
import signal

from gateways import close_gateways
from jobs import clock
from jobs.looker import Looker
from jobs.writer import Writer
from models import transaction, use
from services import sweep
from services.calls import Listener
from services.due import CHANNEL
from services.ledger import INTENT_CHANNEL

PARTS = ("clock", "looker", "writer")


async def _run(parts: set[str]) -> None:
    due_called, intent_called = asyncio.Event(), asyncio.Event()
    loops = [Listener({CHANNEL: due_called, INTENT_CHANNEL: intent_called}).run()]
    ticking = None
    if "looker" in parts:
        loops.append(Looker(due_called).run())
    if "writer" in parts:
        loops.append(Writer(intent_called).run())
    if "clock" in parts:
        await clock.prepare()
        ticking = clock.start()
    tasks = [asyncio.create_task(loop) for loop in loops]
    running = asyncio.gather(*tasks)
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, running.cancel)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await running
    finally:
        if ticking is not None:
            ticking.shutdown(wait=False)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await close_gateways()
        await use(None)


async def _ask_for_sweep() -> None:
    async with transaction() as db:
        await sweep.ask_for_sweep(db)
    await use(None)
    print("A round over everybody begins within a second, in whichever jobs process ticks first.")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m jobs", description="The clock, the looker and the writer.")
    parser.add_argument("--without", action="append", default=[], choices=PARTS, help="leave a part out")
    commands = parser.add_subparsers(dest="command")
    sweeping = commands.add_parser("sweep", help="a round over everybody")
    sweeping.add_argument("--now", action="store_true", required=True, help="begin it now")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("apscheduler").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    asyncio.run(
        _ask_for_sweep() if given.command == "sweep" else _run({part for part in PARTS if part not in given.without})
    )


if __name__ == "__main__":
    main()
