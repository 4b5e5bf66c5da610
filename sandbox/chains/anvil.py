"""One anvil as a child process that never outlives the sandbox, and the JSON-RPC that only the sandbox may use."""

import asyncio
import ctypes
import os
import secrets
import shutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import orjson

PR_SET_PDEATHSIG = 1
START_SECONDS, ANSWER_SECONDS = 90.0, 5.0
PATIENCE_SECONDS = 120.0
"""Seconds after which a node that does not answer counts as gone."""
PORTS_TRIED = 3
# Far above the 50 M of a typical node's eth_call, and low enough that an endless loop ends within seconds.
GAS_LIMIT = 1_000_000_000
STATES_KEPT = 256
_LIBC = ctypes.CDLL(None, use_errno=True)


class NodeError(Exception):
    """The node answered with a JSON-RPC error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", "error"))
        self.error = error


class NodeGone(Exception):
    """The node did not start, is no longer running, or hangs."""


class Anvil:
    """A node whose first block has the given number and time. Call `start` before anything else."""

    def __init__(self, binary: Path, home: Path, chain_id: int, confirmations: int) -> None:
        self._binary = binary
        self._home = home
        self._chain_id = chain_id
        # `safe` is behind by half, and `finalized` by all, of the blocks that a control call mines afterwards.
        self.epoch = confirmations // 2
        self._process: asyncio.subprocess.Process | None = None
        self._session: aiohttp.ClientSession | None = None
        self.host, self.port = "127.0.0.1", 0

    @property
    def url(self) -> str:
        """The node's own address, for the front ends alone."""
        return f"http://{self.host}:{self.port}"

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections to the node. Raises NodeGone before `start` and after `stop`."""
        if self._session is None:
            raise NodeGone("The chain is not running.")
        return self._session

    async def start(self, number: int, timestamp: int) -> None:
        """Start with an empty state at block `number`.

        Raises NodeGone when the node does not answer within START_SECONDS, or its process ended PORTS_TRIED times.
        """
        for _ in range(PORTS_TRIED):
            self.host, self.port = _free_address()
            await self._spawn(number, timestamp)
            if await self._answers():
                return
            # Most likely another program took the port first.
            await self.stop()
        raise NodeGone(f"anvil for chain {self._chain_id} did not start.")

    async def _spawn(self, number: int, timestamp: int) -> None:
        # A killed node leaves its temporary files behind.
        shutil.rmtree(self._home, ignore_errors=True)
        self._home.mkdir(parents=True)
        arguments = {
            "--host": self.host,
            "--port": self.port,
            "--chain-id": self._chain_id,
            "--number": number,
            "--timestamp": timestamp,
            "--prune-history": STATES_KEPT,
            "--gas-limit": GAS_LIMIT,
            "--block-base-fee-per-gas": 7,
            "--slots-in-an-epoch": self.epoch,
            "--accounts": 1,
            "--threads": 2,
            "--order": "fifo",
        }
        environment = {"HOME": str(self._home), "TMPDIR": str(self._home), "PATH": os.environ.get("PATH", "")}
        parent = os.getpid()
        self._process = await asyncio.create_subprocess_exec(
            self._binary,
            *(str(part) for pair in arguments.items() for part in pair),
            "--auto-impersonate",
            "--no-cors",
            "--no-request-size-limit",
            "--quiet",
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            # Ctrl+C in a terminal is meant for the sandbox, which then stops its nodes.
            process_group=0,
            preexec_fn=lambda: _die_with(parent),
        )
        connector = aiohttp.TCPConnector(limit=32)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
        )

    async def _answers(self) -> bool:
        """Wait until this chain answers at the port; return False when the process ended.

        Raises NodeGone after START_SECONDS.
        """
        assert self._process is not None
        deadline = asyncio.get_running_loop().time() + START_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            # Another program may have taken the port first; it may answer in place of this node, or not at all.
            with suppress(NodeGone, ValueError, TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    chain_id = await self.call("eth_chainId")
                if chain_id == hex(self._chain_id):
                    return True
            if self._process.returncode is not None:
                return False
            await asyncio.sleep(0.02)
        raise NodeGone(f"anvil for chain {self._chain_id} did not start.")

    async def ended(self) -> None:
        """Wait until the process has ended; return at once where there is none."""
        if self._process is not None:
            await self._process.wait()

    async def stop(self) -> None:
        """End the process; calling this twice is not an error."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()
            self._process = None

    async def post(self, body: bytes) -> bytes:
        """Send a JSON-RPC body and return the answer unchanged. Raises NodeGone when none comes."""
        session, headers = self.session, {"Content-Type": "application/json"}
        try:
            async with session.post(self.url, data=body, headers=headers) as response:
                return await response.read()
        except (aiohttp.ClientError, TimeoutError) as lost:
            raise NodeGone(f"The node of chain {self._chain_id} does not answer.") from lost

    async def call(self, method: str, *params: Any) -> Any:
        """Call a method and return its result. Raises NodeError, and NodeGone when no answer comes."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        answer = orjson.loads(await self.post(orjson.dumps(asked)))
        if "error" in answer:
            raise NodeError(answer["error"])
        return answer["result"]


def _free_address() -> tuple[str, int]:
    """Return a free address of this machine that nobody can guess.

    The node obeys everybody who reaches it, under any name and from any page: it checks neither the Host nor the Origin
    of a WebSocket. A page in a browser can try each port of 127.0.0.1, but not each of the 16 million loopback
    addresses of a Linux machine. Other systems have 127.0.0.1 alone.
    """
    host = f"127.{secrets.randbelow(254) + 1}.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
    for address in (host, "127.0.0.1"):
        with suppress(OSError), socket.socket() as probe:
            probe.bind((address, 0))
            return address, probe.getsockname()[1]
    raise NodeGone("No address of this machine is free for a node.")


def _die_with(parent: int) -> None:
    """Have this child process killed when the sandbox ends, even if it ended before this call."""
    if sys.platform == "linux":
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
