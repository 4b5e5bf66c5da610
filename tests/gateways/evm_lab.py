"""A real EVM node with small hand-made contracts, and a front end for it that can behave like bad nodes."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

from sandbox.tools import find_anvil
from tests.conftest import free_port

ROOT = Path(__file__).resolve().parents[2]
CHAIN_ID = 8453

# balanceOf(address) is the storage slot of that address; supportsInterface says ERC-165 and ERC-721 (slot 1 adds one
# more); name() is slot 0 as bytes32.
COLLECTION = """
    0 CALLDATALOAD 224 SHR 0x01ffc9a7 EQ @interface JUMPI
    4 CALLDATALOAD SLOAD 0 MSTORE 32 0 RETURN
interface:
    4 CALLDATALOAD 224 SHR DUP1 0x01ffc9a7 EQ DUP2 0x80ac58cd EQ OR SWAP1 1 SLOAD EQ OR 0 MSTORE 32 0 RETURN
"""
_TEXT = b"too many requests"
HOSTILE = {
    "reverts": "0 0 REVERT",
    "burns all its gas": "INVALID",
    "never ends": "again: @again JUMP",
    "returns nothing": "STOP",
    "returns 31 bytes": "1 0 MSTORE 31 0 RETURN",
    "returns 60 kB": "1 0 MSTORE 60000 0 RETURN",
    "returns 64 bytes": "1 0 MSTORE 64 0 RETURN",
    "reverts with 60 kB": "60000 0 REVERT",
    # `Error(string)`, whose text a node repeats in its own message.
    "reverts in a node's words": f"0x08c379a0{'00' * 28} 0 MSTORE 32 4 MSTORE {len(_TEXT)} 36 MSTORE "
    f"0x{_TEXT.ljust(32, bytes(1)).hex()} 68 MSTORE 100 0 REVERT",
}
_OPCODES = {
    name: code
    for line in (
        "00 STOP ADD MUL SUB DIV",
        "10 LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR",
        "31 BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY",
        "3b EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY",
        "42 TIMESTAMP",
        "46 CHAINID",
        "50 POP MLOAD MSTORE MSTORE8 SLOAD SSTORE",
        "56 JUMP JUMPI",
        "5a GAS JUMPDEST",
        "f3 RETURN",
        "fd REVERT INVALID",
        "fa STATICCALL",
        "80 " + " ".join(f"DUP{n}" for n in range(1, 17)),
        "90 " + " ".join(f"SWAP{n}" for n in range(1, 17)),
    )
    for code, name in enumerate(line.split()[1:], start=int(line.split()[0], 16))
}


def assemble(source: str) -> bytes:
    """Assemble EVM code from opcodes, numbers (pushed in the fewest bytes), `name:` labels and `@name` to push one."""
    words = [word for line in source.splitlines() for word in line.partition(";")[0].split()]
    code, labels, uses = bytearray(), dict[str, int](), dict[int, str]()
    for word in words:
        if word.endswith(":"):
            labels[word[:-1]] = len(code)
            code.append(_OPCODES["JUMPDEST"])
        elif word.startswith("@"):
            uses[len(code) + 1] = word[1:]
            code += b"\x61\x00\x00"
        elif word in _OPCODES:
            code.append(_OPCODES[word])
        else:
            value = int(word, 0)
            size = max(1, (value.bit_length() + 7) // 8)
            code += bytes([0x5F + size]) + value.to_bytes(size, "big")
    for place, label in uses.items():
        code[place : place + 2] = labels[label].to_bytes(2, "big")
    return bytes(code)


def address(number: int) -> str:
    """Return a made-up address that belongs to no precompile."""
    return f"0x{0xA0000000000000000000 + number:040x}"


async def rpc(url: str, method: str, *params: Any) -> Any:
    """Send one JSON-RPC call and return its result."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) as answer,
    ):
        said = await answer.json()
        assert "error" not in said, said
        return said["result"]


async def rpc_batch(url: str, calls: list[tuple[Any, ...]]) -> None:
    """Send many calls, each a method and its parameters, in one request; the node makes them one after another."""
    batch = [{"jsonrpc": "2.0", "id": n, "method": call[0], "params": call[1:]} for n, call in enumerate(calls)]
    async with aiohttp.ClientSession() as session:
        answers = orjson.loads(await _passed(session, url, orjson.dumps(batch)))
    assert len(answers) == len(batch), answers
    assert not [one for one in answers if "error" in one], answers


@contextmanager
def anvil(*options: str) -> Iterator[str]:
    """Start a fresh node with Base's chain id and yield its URL."""
    binary = find_anvil(ROOT / "data" / "tools")
    assert binary is not None, "no anvil: `make test` installs it, or name one with the variable ANVIL"
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="hf-evm-", dir="/tmp") as home:
        process = subprocess.Popen(
            [binary, "--port", str(port), "--chain-id", str(CHAIN_ID), "--no-request-size-limit", "--quiet", *options],
            env=os.environ | {"HOME": home, "TMPDIR": home},
        )
        url = f"http://127.0.0.1:{port}"
        try:
            asyncio.run(_until_up(url))
            yield url
        finally:
            process.kill()
            process.wait()


async def _until_up(url: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await rpc(url, "eth_chainId")
                return
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)


async def deploy(url: str, contract: str, source: str, slots: dict[int, int] | None = None) -> None:
    """Put code and storage at an address, and mine a block so that the head is fresh."""
    stored = [
        ("anvil_setStorageAt", contract, f"0x{at:064x}", f"0x{value:064x}") for at, value in (slots or {}).items()
    ]
    await rpc_batch(url, [("anvil_setCode", contract, "0x" + assemble(source).hex()), *stored, ("anvil_mine", "0x1")])


Change = Callable[[dict[str, Any], Any], Any]
"""A function from one call and its true answer to the answer that is sent."""


@dataclass
class Front:
    """A proxy in front of the node: it forwards everything, unless told otherwise."""

    node: str
    session: aiohttp.ClientSession
    url: str = ""
    change: Change | None = None
    instead: Callable[[], web.Response] | None = None
    judge: Callable[[Any], web.Response | None] = field(default=lambda _: None)
    """The answer to send instead, by the body of the request, or None."""
    hangs: Callable[[Any], bool] = field(default=lambda _: False)
    """Whether a request with this body stays unanswered."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    requests: int = 0
    bytes: int = 0

    def methods(self) -> list[str]:
        """Return the requested methods in order."""
        return [call["method"] for call in self.calls]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests += 1
        asked = orjson.loads(body)
        calls = asked if isinstance(asked, list) else [asked]
        self.calls += calls
        if self.instead is not None:
            return self.instead()
        if self.hangs(body):
            await asyncio.sleep(30)
        if (refusal := self.judge(body)) is not None:
            return refusal
        said = await _passed(self.session, self.node, body)
        self.bytes += len(body) + len(said)
        if self.change is not None:
            true = orjson.loads(said)
            answers = true if isinstance(true, list) else [true]
            changed = [self.change(call, item) for call, item in zip(calls, answers, strict=True)]
            said = orjson.dumps(changed if isinstance(asked, list) else changed[0])
        return web.Response(body=said, content_type="application/json")

    async def passes_on(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the node's answers to a batch of calls, without counting or changing them."""
        return orjson.loads(await _passed(self.session, self.node, orjson.dumps(calls)))


async def _passed(session: aiohttp.ClientSession, node: str, body: bytes) -> bytes:
    async with session.post(node, data=body, headers={"Content-Type": "application/json"}) as answer:
        return await answer.read()


@asynccontextmanager
async def front(node: str) -> AsyncIterator[Front]:
    """A front end for the node."""
    session = aiohttp.ClientSession()
    made = Front(node, session)
    app = web.Application(client_max_size=64_000_000)
    app.router.add_post("/", made.handle)
    server = TestServer(app)
    await server.start_server(shutdown_timeout=0.1)
    made.url = str(server.make_url("/"))
    try:
        yield made
    finally:
        await server.close()
        await session.close()


def without_override(call: dict[str, Any], true: Any) -> Any:
    """Answer a call as a node without state override; for `Front.change`."""
    if call["method"] == "eth_call" and len(call["params"]) > 2:
        return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32602, "message": "too many arguments"}}
    return true
