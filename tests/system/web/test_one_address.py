"""Two web workers on one database and one Redis, behind one address that spreads connections over them.

A person served by both notices no difference: no session, tab or limit belongs to a worker.
"""

import asyncio
import os
import signal
import socket as sockets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from tests.conftest import free_port
from tests.system.web.conftest import Web, running_web, web_database
from tests.system.web.sockets import socket

RULE_FORM = "reflex___state____state.state___rule_form___rule_form____rule_form_state"
PROOFS_A_MINUTE = 3
STORM = 200
PIECE = 65_536


class Front:
    """A connection balancer: each connection goes to the next worker that accepts it, and stays there."""

    def __init__(self) -> None:
        self.port = free_port()
        self.workers: list[int] = []
        self.taken: list[int] = []
        """The port of the worker that got each connection."""
        self._turn = count()

    @property
    def web(self) -> Web:
        """The address that people type."""
        return Web(f"http://localhost:{self.port}", Path())

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection."""
        first = next(self._turn)
        for place in range(len(self.workers)):
            port = self.workers[(first + place) % len(self.workers)]
            try:
                there = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            self.taken.append(port)
            await asyncio.gather(_pass(reader, there[1]), _pass(there[0], writer))
            return
        writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
    with suppress(OSError):
        writer.close()
        await writer.wait_closed()


@contextmanager
def front() -> Iterator[Front]:
    """A balancer in a thread of its own."""
    made, loop = Front(), asyncio.new_event_loop()
    listening = sockets.create_server(("127.0.0.1", made.port))

    async def serve() -> None:
        async with await asyncio.start_server(made.take, sock=listening):
            await over.wait()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    over = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def address(
    postgres_url: str, template_url: str, sandbox_url: str, redis_url: str
) -> Iterator[tuple[Front, tuple[Web, Web]]]:
    """Two workers, which also answer on their own ports, and an address in front that forwards people's addresses."""
    database = web_database(postgres_url, "one_address")
    with front() as made:
        shared = {"REDIS_URL": redis_url, "WEB_CONCURRENCY": "1", "PUBLIC_URL": made.web.url,
                  "TRUSTED_PROXIES": "127.0.0.1", "LIMIT_PROOFS": str(PROOFS_A_MINUTE)}  # fmt: skip
        with running_web(database, sandbox_url, shared) as one, running_web(database, sandbox_url, shared) as other:
            made.workers = [one.port, other.port]
            yield made, (one, other)


async def sign_in(url: str, person: str, sender: str) -> tuple[list[int], str]:
    """Sign in, with a connection for each request; return our own statuses, and the session's id or an empty text."""
    cookies, seen = httpx.Cookies(), list[int]()

    async def ask(target: str) -> httpx.Response:
        async with httpx.AsyncClient(timeout=120, cookies=cookies) as browser:
            answer = await browser.get(target, headers={"X-Forwarded-For": sender})
        cookies.update(answer.cookies)
        seen.append(answer.status_code)
        return answer

    begun = await ask(f"{url}/api/auth/discord")
    if begun.status_code >= 400:
        return seen, ""
    async with httpx.AsyncClient(timeout=120) as browser:
        agreed = await browser.get(f"{begun.headers['location']}&as={person}")
    returned = await ask(agreed.headers["location"])
    return seen, parse_qs(urlsplit(returned.headers.get("location", "")).query).get("session", [""])[0]


async def _call(worker: Web, session: str, path: str, method: str = "GET") -> httpx.Response:
    async with httpx.AsyncClient(timeout=30) as browser:
        return await browser.request(method, f"{worker.url}{path}", headers={"x-session-id": session})


async def test_a_session_and_a_tabs_state_go_on_at_the_other_worker(address: tuple[Front, tuple[Web, Web]]) -> None:
    made, (one, other) = address
    _, session = await sign_in(made.web.url, "ada", "10.1.0.1")
    tab = str(uuid4())
    async with socket(one, session, tab=tab, origin=made.web.url) as ada:
        await ada.until('"member"')
        await ada.event(f"{RULE_FORM}.add_tokens", {"number": 1, "form": {"tokenEntry": "41"}})
        assert '["41"]' in await ada.until("token_ids")
    async with socket(other, session, tab=tab, origin=made.web.url) as ada:
        await ada.event(f"{RULE_FORM}.add_tokens", {"number": 1, "form": {"tokenEntry": "42"}})
        assert '["41","42"]' in await ada.until('"42"')


async def test_a_session_that_ended_at_one_worker_has_ended_at_the_other(
    address: tuple[Front, tuple[Web, Web]],
) -> None:
    made, workers = address
    _, session = await sign_in(made.web.url, "bob", "10.1.0.2")
    for worker in workers:
        assert (await _call(worker, session, "/api/auth/user")).status_code == 200
    assert (await _call(workers[0], session, "/api/auth/logout", "POST")).is_success
    for worker in workers:
        assert (await _call(worker, session, "/api/auth/user")).status_code == 401


async def test_both_workers_count_together_how_often_somebody_may_do_something(
    address: tuple[Front, tuple[Web, Web]],
) -> None:
    made, workers = address
    _, session = await sign_in(made.web.url, "carol", "10.1.0.3")
    path = f"/api/wallet-challenge?address=0x{'ab' * 20}"
    told = [(await _call(workers[n % 2], session, path)).status_code for n in range(PROOFS_A_MINUTE + 2)]
    assert told == [*[200] * PROOFS_A_MINUTE, 429, 429]


async def test_one_address_that_signs_in_without_end_is_told_to_wait_by_both_workers_together(
    address: tuple[Front, tuple[Web, Web]],
) -> None:
    made, _ = address
    found = await asyncio.gather(*(sign_in(made.web.url, "ada", "10.2.0.1") for _ in range(STORM)))
    statuses = {status for seen, _ in found for status in seen}
    assert 429 in statuses
    assert max(statuses) == 429


# The last test here: one of the two workers is gone after it.
async def test_a_tab_whose_worker_dies_goes_on_at_the_other(address: tuple[Front, tuple[Web, Web]]) -> None:
    made, workers = address
    seen, session = await sign_in(made.web.url, "ada", "10.3.0.1")
    assert session, seen
    assert len(set(made.taken[-len(seen) :])) == 2, "it began at one worker and ended at the other"
    tab = str(uuid4())
    async with socket(made.web, session, tab=tab) as ada:
        await ada.until('"member"')
        await ada.event(f"{RULE_FORM}.add_tokens", {"number": 1, "form": {"tokenEntry": "41"}})
        assert '["41"]' in await ada.until("token_ids")
        killed = next(one for one in workers if one.port == made.taken[-1])
        kill(killed.pid)
        with pytest.raises(ConnectionClosed):
            await ada.until("never")
    async with socket(made.web, session, tab=tab) as ada:
        await ada.event(f"{RULE_FORM}.add_tokens", {"number": 1, "form": {"tokenEntry": "42"}})
        # A worker writes a tab's state to Redis with a delay, so entries just before its death may be lost.
        assert "token_ids" in await ada.until('"42"]')
    async with httpx.AsyncClient(timeout=30) as browser:
        answer = await browser.get(f"{made.web.url}/api/auth/user", headers={"x-session-id": session})
    assert answer.status_code == 200
    assert made.taken[-1] != killed.port


def kill(pid: int) -> None:
    """Kill a web process and its children with `kill -9`."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for one in (pid, *map(int, children)):
        os.kill(one, signal.SIGKILL)
