"""Looking up the hosts of strangers' links."""

import asyncio
import socket
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import pytest

from gateways.transport.public_addresses import LookupThreads, resolve
from gateways.transport.safe_fetch import CONNECTIONS


async def test_hosts_whose_dns_does_not_answer_keep_no_other_host_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    # A lookup lasts longer than its link's own time, so more of them than links are under way.
    answer = threading.Event()

    def lookup(host: str, *_: object, **__: object) -> list[Any]:
        if host.startswith("silent"):
            answer.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    silent = [asyncio.create_task(resolve(f"silent{number}.example", 443)) for number in range(2 * CONNECTIONS)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(20):
            assert await resolve("cats.example", 443) == ("93.184.215.14",)
    finally:
        answer.set()
        await asyncio.gather(*silent)


async def test_a_lookup_that_is_cancelled_before_its_turn_is_never_made() -> None:
    # Otherwise it keeps a thread for half a minute, though nobody waits for it.
    threads, answer, asked = LookupThreads(1), threading.Event(), list[str]()

    def lookup(host: str) -> list[Any]:
        asked.append(host)
        answer.wait(60)
        return []

    first, cancelled, last = (asyncio.create_task(threads.run(partial(lookup, host))) for host in ("a", "b", "c"))
    await asyncio.sleep(0)
    cancelled.cancel()
    answer.set()
    async with asyncio.timeout(20):
        await asyncio.gather(first, last)
    assert asked == ["a", "c"]


ENDING = """
import asyncio, socket, threading
from gateways.transport.public_addresses import resolve

asked = threading.Event()

def lookup(*_, **__):
    asked.set()
    threading.Event().wait()

async def main():
    looking = asyncio.create_task(resolve("silent.example", 443))
    await asyncio.to_thread(asked.wait)
    looking.cancel()

socket.getaddrinfo = lookup
asyncio.run(main())
print("ended")
"""


def test_a_lookup_without_an_answer_keeps_no_process_from_ending() -> None:
    # Far longer than the end takes; the lookup itself never ends.
    told = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == "ended\n"


async def test_a_lookup_that_fails_in_another_way_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(*_: object, **__: object) -> list[Any]:
        raise MemoryError

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with pytest.raises(MemoryError):
        await resolve("cats.example", 443)
