"""For a web process that nobody supervises (`reflex run --backend-only`): bring up everything else beside it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.supervisor.leftovers import running
from app.supervisor.plan import data_dir
from settings import ROOT, settings


class CompanionsFailed(Exception):
    """The database and the other processes did not come up; what they said is in the log above."""


@asynccontextmanager
async def start_if_alone(seconds: float = 180.0) -> AsyncIterator[str | None]:
    """While the block runs, all but the web runs too; gives the database's address, None when a supervisor started us.

    If somebody else already runs on our data (another web worker's companions, say), theirs are used. Raises
    CompanionsFailed when nothing is up within `seconds`.
    """
    if os.environ.get("HOLDFAST_SUPERVISED"):
        yield None
        return
    process = None
    if running(data_dir(settings())) is None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "app", "--without-web", "--end-with", str(os.getpid()), cwd=ROOT,
            process_group=0,
        )  # fmt: skip
    try:
        yield await _database_url(process, seconds)
    finally:
        if process is not None and process.returncode is None:
            process.terminate()
            await process.wait()


async def _database_url(process: asyncio.subprocess.Process | None, seconds: float) -> str:
    """Wait until the running supervisor has migrated its database."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                found = running(data_dir(settings()))
                if found is not None and found.database_url:
                    return found.database_url
                if found is None and (process is None or process.returncode is not None):
                    raise CompanionsFailed("The other processes ended while starting.")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise CompanionsFailed(f"The database was not up after {seconds:g} s.") from None
