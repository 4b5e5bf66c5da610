"""Starts everything else beside a web process without a supervisor (`reflex run --backend-only`)."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.supervisor.processes import data_dir
from app.supervisor.single_instance import running
from settings import ROOT, settings


class CompanionsFailed(Exception):
    """Raised when the database and the other processes did not start; their output is in the log above."""


@asynccontextmanager
async def start_if_alone(seconds: float = 180.0) -> AsyncIterator[str | None]:
    """Run everything but the web during the block; yield the database's URL, or None under a supervisor.

    If another supervisor already runs on our data (started by another web worker, say), that one is used. Raises
    CompanionsFailed if nothing is ready within `seconds`.
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
    """Wait until the running supervisor has migrated its database; return its URL."""
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
