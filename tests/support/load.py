"""`make load`: a web process with 500 tabs open and 200 reads a second, half of the time beside callers that stall."""

import asyncio
import os
import platform
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from statistics import quantiles

import aiohttp

from tests.support.product import Machine, build_screens
from tests.system.web.conftest import Web, sign_in
from tests.system.web.sockets import socket

TABS = int(os.environ.get("LOAD_TABS", "500"))
CALLS_PER_SECOND = int(os.environ.get("LOAD_CALLS", "200"))
SECONDS = int(os.environ.get("LOAD_SECONDS", "20"))
STALLING = 300
"""Connections that begin a request and never end it."""
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: x"
HALF_A_BODY = b"POST /api/servers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
NEVER = "what no server says: until then a tab answers pings, as a browser does"
PATHS = ("/api/servers", "/api/wallet-verifications", "/health", "/api/me/sessions", "/")


@dataclass
class Tally:
    """The seconds that each call took, and the faults."""

    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def row(self, name: str, lasted: float) -> str:
        """Return the tally as a row of the table."""
        cuts = [1000 * cut for cut in quantiles(self.seconds, n=100)]
        some = ", ".join(sorted(set(self.faults))[:3])
        faults = f"{len(self.faults)} ({some})" if some else "0"
        return f"| {name} | {len(self.seconds) / lasted:.0f} | {cuts[49]:.0f} ms | {cuts[98]:.0f} ms | {faults} |"


async def calls(client: aiohttp.ClientSession, seconds: int) -> Tally:
    """Make reads at a steady pace, whether or not the earlier ones have been answered."""
    tally, under_way, began = Tally(), set[asyncio.Task[None]](), time.monotonic()

    async def one(path: str) -> None:
        start = time.monotonic()
        try:
            async with client.get(path) as answer:
                await answer.read()
        except (aiohttp.ClientError, TimeoutError) as fault:
            tally.faults.append(type(fault).__name__)
            return
        tally.seconds.append(time.monotonic() - start)
        if answer.status != 200:
            tally.faults.append(f"{path} {answer.status}")

    for number in range(CALLS_PER_SECOND * seconds):
        await asyncio.sleep(max(0.0, began + number / CALLS_PER_SECOND - time.monotonic()))
        task = asyncio.create_task(one(PATHS[number % len(PATHS)]))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    return tally


@asynccontextmanager
async def stalling(web: Web) -> AsyncIterator[None]:
    """Keep callers that open a connection, send half a request, and wait."""
    writers: list[asyncio.StreamWriter] = []
    for number in range(STALLING):
        _, writer = await asyncio.open_connection("localhost", web.port)
        writer.write(HALF_A_HEAD if number % 2 else HALF_A_BODY)
        writers.append(writer)
    try:
        yield
    finally:
        for writer in writers:
            writer.close()


async def main() -> int:
    """Run the load and print the results; return 1 when anything failed."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="hf-load-") as directory:
        machine = Machine(Path(directory), 3_600)
        build_screens()
        try:
            machine.start()
            web = Web(machine.product.url, machine.log)
            return await measure(web)
        finally:
            machine.stop()


async def measure(web: Web) -> int:
    """Put the load on a running product, and print the results; return 1 when anything failed."""
    session = await asyncio.to_thread(sign_in, web.url, "ada")
    # Not httpx, which checks every connection for each call: with 100 connections it would be the bottleneck itself.
    client = aiohttp.ClientSession(
        web.url, headers={"Cookie": f"hf_session={session}"}, connector=aiohttp.TCPConnector(limit=100),
        timeout=aiohttp.ClientTimeout(30),
    )  # fmt: skip
    async with AsyncExitStack() as stack, client:
        began = time.monotonic()
        tabs = [await stack.enter_async_context(socket(web, session if number % 2 else None)) for number in range(TABS)]
        print(f"{TABS} tabs open and greeted in {time.monotonic() - began:.1f} s.", flush=True)
        beats = [asyncio.create_task(tab.until(NEVER)) for tab in tabs]
        print(f"\n| {CALLS_PER_SECOND} reads a second for {SECONDS} s | answered in a second ", end="")
        print("| half within | 99 of 100 within | errors |")
        print("|---|---|---|---|---|", flush=True)
        tallies: list[Tally] = []
        for name in ("alone", f"beside {STALLING} stalling callers"):
            began = time.monotonic()
            if name == "alone":
                tallies.append(await calls(client, SECONDS))
            else:
                async with stalling(web):
                    tallies.append(await calls(client, SECONDS))
            print(tallies[-1].row(name, time.monotonic() - began), flush=True)
        for beat in beats:
            beat.cancel()
        await asyncio.gather(*beats, return_exceptions=True)
        alive = await asyncio.gather(*(tab.alive() for tab in tabs), return_exceptions=True)
    lost = [one for one in alive if isinstance(one, BaseException)]
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"\n{TABS - len(lost)} of {TABS} tabs still answer ({where}, {time.strftime('%F')}).")
    return 1 if lost or any(tally.faults for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
