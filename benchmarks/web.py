"""The web process, one visitor at a time: events, pages, calls, beside the same server with nothing in it.

`python -m benchmarks.web [--quick]`. The whole product runs as `make run` starts it, with the daily sweep a day away;
ours and the bare server's are measured in turn. Times are the visitor's, with the way there and back.
"""

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import httpx
from playwright.async_api import async_playwright
from websockets.asyncio.client import connect

from benchmarks.support.nft_chain import ROOT
from benchmarks.support.rounds import environment, options
from tests.conftest import free_port, wait_until_open
from tests.support.product import DAY, Machine, running
from tests.system.browser.conftest import ARGUMENTS
from tests.system.web.conftest import Web, sign_in
from tests.system.web.sockets import BOOT, socket

CALLS = ("/health", "/api/servers", "/api/wallet-verifications", "/api/me/sessions")
PAGES = ("/", "/dashboard")
HANDLER = "reflex___state____state.state___server___channels____channels_state.choose"
"""A handler that only keeps one value: the rest is the gate, the state and the transport."""

REST = 0.15
"""Seconds between two events: more than ten a second for long are slowed down."""

Once = Callable[[], Awaitable[None]]


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    given = options("web", __doc__, quick="fewer of each").parse_args(arguments)
    times = 50 if given.quick else 300
    with (
        TemporaryDirectory(prefix="hf-bench-", dir="/tmp") as directory,
        bare() as peer,
        running(Path(directory), DAY) as machine,
    ):
        asyncio.run(measure(machine, peer, times))


@contextmanager
def bare() -> Iterator[str]:
    """The bare server; yields its address, and ends with the block."""
    port = free_port()
    command = [sys.executable, "-m", "granian", "--interface", "asgi", "benchmarks.peers.bare_web:app"]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--log-level", "warning"], cwd=ROOT, env=environment()
    )
    try:
        wait_until_open(port, process)
        yield f"http://localhost:{port}"
    finally:
        process.terminate()
        process.wait()


async def measure(machine: Machine, peer: str, times: int) -> None:
    """Measure events, pages and calls, each beside the bare server's."""
    web = Web(machine.product.url, machine.log)
    session = await asyncio.to_thread(sign_in, web.url, "ada")
    print("\nThe web process, one visitor, one thing at a time\n")
    print("| what | half within, ms | 95 of 100 within, ms | times the bare server's |\n|---|---|---|---|")
    cookie = {"Cookie": f"hf_session={session}"}
    async with httpx.AsyncClient(timeout=30) as client:
        for path in CALLS:
            await show(f"GET {path}", times, call(client, web.url + path, cookie), call(client, f"{peer}/answer", {}))
    async with socket(web, session) as ours, echoing(peer) as echo:
        numbers = itertools.count(1)

        async def choose() -> None:
            chosen = f"channel-{next(numbers)}"
            await ours.event(HANDLER, {"channel_id": chosen})
            await ours.until(chosen)

        async def load() -> None:
            await ours.event(BOOT, place="/dashboard")
            await ours.until('"is_hydrated_rx_state_":true')

        await show("event: one value is kept", times // 3, choose, echo, REST)
        await show("event: the dashboard's data", times // 5, load, echo, REST)
    async with async_playwright() as playwright:
        chromium = (ROOT / "data" / "tools" / "browser").read_text().strip()
        browser = await playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        context = await browser.new_context()
        await context.add_cookies([{"name": "hf_session", "value": session, "url": web.url, "httpOnly": True}])
        page = await context.new_page()

        async def visit(url: str) -> None:
            await page.goto(url, wait_until="load")
            await page.get_by_role("heading", level=1).first.wait_for()

        for path in PAGES:
            name = f"page {path}, until its heading is there, in a browser that was here before"
            await show(
                name, max(10, times // 15), lambda path=path: visit(web.url + path), lambda: visit(f"{peer}/page")
            )
        await browser.close()


def call(client: httpx.AsyncClient, url: str, headers: dict[str, str]) -> Once:
    """Make a function for one call of the REST interface."""

    async def once() -> None:
        (await client.get(url, headers=headers)).raise_for_status()

    return once


@asynccontextmanager
async def echoing(peer: str) -> AsyncIterator[Once]:
    """Send a message to the bare server's socket and wait for its echo."""
    async with connect(f"{peer.replace('http', 'ws', 1)}/echo", proxy=None) as connection:

        async def once() -> None:
            await connection.send("x" * 200)
            await connection.recv()

        yield once


async def show(name: str, times: int, ours: Once, peer: Once, rest: float = 0.0) -> None:
    """Print one row: both are measured in turn, so that other load on the machine affects both alike."""
    took: list[list[float]] = [[], []]
    for once in (ours, peer):
        await once()
    for _ in range(times):
        await asyncio.sleep(rest)
        for once, found in zip((ours, peer), took, strict=True):
            began = time.perf_counter()
            await once()
            found.append(1000 * (time.perf_counter() - began))
    here, there = took
    print(
        f"| {name} | {median(here):.1f} | {quantiles(here, n=20)[-1]:.1f} | {median(here) / median(there):.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
