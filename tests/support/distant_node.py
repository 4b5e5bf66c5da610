"""A proxy that makes a node as distant and as limited as the nodes that operators use.

`python -m tests.support.distant_node PORT NODE MILLISECONDS [--logs BLOCKS] [--batch CALLS] [--address]`. Each request
waits half of the time on the way to the node and half on the way back. `--logs` refuses ranges of more blocks,
`--batch` batches of more calls, `--address` logs without an address, each with the error text of a provider that does
so. `POST /far/hang?seconds=16` leaves requests unanswered for that time, as a node behind a broken balancer does. `GET
/far/tally` returns how many requests came; `DELETE /far/tally` sets that to 0.
"""

import argparse
import asyncio
import json
import logging
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

from tests.conftest import ROOT, free_port

LARGEST = 64_000_000
JSON = {"Content-Type": "application/json"}


class Far:
    """The node behind the proxy, its distance, its limits and its hangs."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.node, self.seconds = str(given.node), float(given.milliseconds) / 1000
        self.logs, self.batch, self.address = int(given.logs), int(given.batch), bool(given.address)
        self.hangs_until = 0.0
        self.requests = 0
        self.session: ClientSession | None = None

    async def answer(self, request: web.Request) -> web.Response:
        """Pass one JSON-RPC request on to the node, and its answer back."""
        body = await request.read()
        self.requests += 1
        await asyncio.sleep(self.seconds / 2)
        if (left := self.hangs_until - time.monotonic()) > 0:
            # The client gives up long before this; a later answer would reach nobody.
            await asyncio.sleep(left)
            raise web.HTTPServiceUnavailable
        status, content = self.refused(body) or await self._ask(request, body)
        await asyncio.sleep(self.seconds / 2)
        return web.Response(body=content, status=status, headers=JSON)

    async def _ask(self, request: web.Request, body: bytes) -> tuple[int, bytes]:
        if self.session is None:
            self.session = ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=120))
        try:
            async with self.session.post(self.node, data=body, headers=JSON) as said:
                return said.status, await said.read()
        except ClientError:
            # The node closed the connection: so does the proxy.
            if request.transport is not None:
                request.transport.abort()
            raise

    def refused(self, body: bytes) -> tuple[int, bytes] | None:
        """Return the refusal of a request that the plan does not cover."""
        if not (self.logs or self.batch or self.address):
            return None
        asked: Any = json.loads(body)
        if isinstance(asked, list):
            if self.batch and len(asked) > self.batch:
                return 500, _error(None, -32600, f"Batch of more than {self.batch} requests are not allowed")
            return None
        if asked.get("method") != "eth_getLogs":
            return None
        filters = asked["params"][0]
        if self.address and not filters.get("address"):
            return 200, _error(asked["id"], -32701, "Please specify an address in your request")
        first, last = filters.get("fromBlock", "0x0"), filters.get("toBlock", "latest")
        if self.logs and first[:2] == last[:2] == "0x" and int(last, 16) - int(first, 16) >= self.logs:
            words = f"You can make eth_getLogs requests with up to a {self.logs} block range."
            return 200, _error(asked["id"], -32600, words)
        return None

    async def hang(self, request: web.Request) -> web.Response:
        """Leave the requests of the next `seconds` unanswered."""
        self.hangs_until = time.monotonic() + float(request.query["seconds"])
        return web.Response()

    async def tally(self, request: web.Request) -> web.Response:
        """Return the number of requests since the last DELETE."""
        if request.method == "DELETE":
            self.requests = 0
        return web.json_response({"requests": self.requests})

    async def close(self, _: web.Application) -> None:
        """Close the connections to the node."""
        if self.session is not None:
            await self.session.close()


def _error(number: object, code: int, message: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}).encode()


@contextmanager
def far(node: str, milliseconds: int, *, logs: int = 0, batch: int = 0, address: int = 0) -> Iterator[str]:
    """Yield the address of a proxy in front of a node; the proxy ends with the block."""
    port = free_port()
    options = ["--logs", str(logs), "--batch", str(batch), *(["--address"] if address else [])]
    command = [sys.executable, "-m", "tests.support.distant_node", str(port), node, str(milliseconds), *options]
    process = subprocess.Popen(command, cwd=ROOT)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                tally(url)
                break
            except (urllib.error.URLError, OSError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield url
    finally:
        process.kill()
        process.wait()


def tally(url: str, method: str = "GET") -> dict[str, int]:
    """Return how many requests came to a proxy."""
    return dict(json.loads(_call(f"{url}/far/tally", method)))


def hang(url: str, seconds: float) -> None:
    """Let a proxy leave every request unanswered for `seconds`."""
    _call(f"{url}/far/hang?seconds={seconds}", "POST")


def _call(url: str, method: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as answer:
        return bytes(answer.read())


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.distant_node", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("port", type=int)
    parser.add_argument("node")
    parser.add_argument("milliseconds", type=float)
    parser.add_argument("--logs", type=int, default=0)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--address", action="store_true")
    given = parser.parse_args()
    # Clients that give up before their answer are what a hang is for: they are no error here.
    logging.getLogger("aiohttp.server").disabled = True
    here = Far(given)
    app = web.Application(client_max_size=LARGEST)
    app.router.add_post("/", here.answer)
    app.router.add_post("/far/hang", here.hang)
    app.router.add_get("/far/tally", here.tally)
    app.router.add_delete("/far/tally", here.tally)
    app.on_cleanup.append(here.close)
    web.run_app(app, host="127.0.0.1", port=given.port, print=None, access_log=None)


if __name__ == "__main__":
    main()
