"""Endless messages, sent to the web process as operators run it."""

import asyncio
import struct
from pathlib import Path
from uuid import uuid4

import httpx

from tests.system.web.conftest import Web
from tests.system.web.sockets import HELLO, socket

MIB = 1024 * 1024
SOCKETS, FRAGMENTS = 8, 60
MOST_GROWTH = 100 * MIB
TEXT, GOES_ON, LAST, MASKED = 0x1, 0x0, 0x80, 0x80


def frame(head: int, payload: bytes) -> bytes:
    """Return a browser's frame, with a mask of zeros."""
    return bytes([head, MASKED | 127]) + struct.pack(">Q", len(payload)) + bytes(4) + payload


async def without_end(web: Web) -> bool:
    """Send a message of many fragments without a last one; return whether the other side closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    head = (
        f"GET /_event/?EIO=4&transport=websocket&token={uuid4()}", f"Host: localhost:{web.port}", f"Origin: {web.url}",
        "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )  # fmt: skip
    writer.write("\r\n".join((f"{head[0]} HTTP/1.1", *head[1:], "", "")).encode())
    try:
        await reader.readuntil(b"\r\n\r\n")
        # A sender must also notice the close, although the other side's window is closed.
        async with asyncio.timeout(60):
            writer.write(frame(LAST | TEXT, HELLO.encode()))
            for number in range(FRAGMENTS):
                writer.write(frame(GOES_ON if number else TEXT, b"a" * MIB))
                await writer.drain()
            while await reader.read(4096):
                pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    finally:
        writer.transport.abort()


def memory(web: Web) -> tuple[int, int]:
    """Return the memory of the web's processes in bytes: now, and the highest so far."""
    present = peak = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # it has ended
            continue
        if str(web.pid) in {fields["Pid"].strip(), fields["PPid"].strip()} and "VmRSS" in fields:
            present += int(fields["VmRSS"].split()[0]) * 1024
            peak += int(fields["VmHWM"].split()[0]) * 1024
    return present, peak


async def test_messages_without_an_end_are_cut_off_and_others_go_on(web: Web) -> None:
    before = memory(web)
    assert before[0] > 0
    answered = list[bool]()
    async with (
        httpx.AsyncClient(base_url=web.url, timeout=60) as client,
        # Everybody else has another address: to the web this one is the attacker's alone.
        socket(web, sender="127.0.0.2") as other,
    ):
        attack = asyncio.gather(*(without_end(web) for _ in range(SOCKETS)))
        while not attack.done() or not answered:
            answered.append((await client.get("/api/openapi.json")).is_success)
            await other.alive()
        assert await attack == [True] * SOCKETS
        await other.alive()
    assert all(answered)
    after = memory(web)
    assert max(after[0] - before[0], after[1] - before[1]) < MOST_GROWTH, (before, after)
