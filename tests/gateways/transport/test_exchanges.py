"""A caller that stops waiting for an answer costs the host's pool no connection."""

import asyncio
import contextlib
import gc
import inspect
from collections.abc import AsyncIterator

import httpx
import pytest

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.node import Node
from gateways.transport.exchanges import end_all, to_its_end

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":"0x1"}'
STEPS, ROUNDS = 6, 12
"""Turns of the event loop after the answer was sent until no caller waits any more, and a number of rounds above the
places in a node's pool."""


class Server:
    """A server that answers each request at once and sets an event when it has."""

    def __init__(self) -> None:
        self.url = ""
        self.answered = asyncio.Event()
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.partition(b":")[2]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER))
                self.answered.set()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        yield made
        for writer in made.writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def test_questions_that_are_given_up_at_any_moment_leave_the_connections_free(server: Server) -> None:
    node = Node(CHAINS["base"], 0, server.url, request_seconds=30.0)
    try:
        for turns in range(STEPS * ROUNDS):
            server.answered.clear()
            asking = asyncio.create_task(node.call("eth_chainId", ()))
            await server.answered.wait()
            for _ in range(turns % STEPS):
                await asyncio.sleep(0)
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
        assert await node.call("eth_chainId", ()) == "0x1"
    finally:
        await node.close()


async def test_an_exchange_that_takes_too_long_ends_as_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        await to_its_end(asyncio.sleep(60), 0.01)


async def test_an_exchange_goes_on_without_its_caller_and_its_failure_disturbs_nobody() -> None:
    ended, reported = asyncio.Event(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def fails() -> None:
        await asyncio.sleep(0)
        ended.set()
        raise httpx.ReadError("broken")

    caller = asyncio.create_task(to_its_end(fails(), 5))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await ended.wait()
    del caller
    await asyncio.sleep(0)
    gc.collect()
    assert reported == []


async def test_an_exchange_that_never_began_is_closed() -> None:
    async def never() -> None:
        raise AssertionError("it began")

    exchange = never()
    caller = asyncio.create_task(to_its_end(exchange, 5))
    await asyncio.sleep(0)
    mine = {asyncio.current_task(), caller}
    for task in asyncio.all_tasks() - mine:
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert inspect.getcoroutinestate(exchange) == inspect.CORO_CLOSED


async def test_closing_the_connections_first_ends_what_nobody_waits_for() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def exchange() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    task = asyncio.create_task(to_its_end(exchange(), 60))
    await begun.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert not ended.is_set(), "it goes on by itself"
    await end_all()
    assert ended.is_set()
