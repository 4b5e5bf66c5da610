"""One EVM node over JSON-RPC: asking it, and finding out whether it may be trusted right now."""

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import cast
from urllib.parse import urlsplit

import httpx
import orjson

from gateways.chains.chain_file import Chain
from gateways.chains.node_providers import source_name
from gateways.evm.rpc.batch_sizes import BatchRefused, BatchSize, is_about_the_batch, one_by_one_refused, unpacked
from gateways.evm.rpc.errors import NodeTimedOut, RpcRefused, StateMissing, TooMuch, http_fault, refusal_in
from gateways.evm.rpc.head_track import HeadTrack
from gateways.transport import corrected_clock, provider_reports, question_time
from gateways.transport.connections import GatedClient, TurnedAway, agent, read_at_most, timeouts, tls
from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderDown, ProviderError, no_answer
from gateways.transport.fair_turns import FairGate, caller, on_behalf_of

Decode = Callable[[bytes], object]
"""Decodes a whole answer, as orjson.loads does. A decoder for one kind of answer falls back to orjson for others."""
CONNECTIONS, MOST_FOR_ONE, FOR_URGENT = 8, 4, 2
"""Requests to one node at a time; how many of them for one tenant, and how many places are for urgent callers alone."""
LARGEST_ANSWER = 16_000_000
"""Bytes; the largest answer we ask for is about 1 MB."""
STALE_AFTER = 90.0
KEPT_OPEN_SECONDS = 15.0
"""Seconds for which an idle connection is kept open.

A follower asks every few seconds and keeps its connection. Those that only a reconcile needed are closed soon, because
httpcore goes through every open connection at each request.
"""
HANDED_ON_FOR = 1.0
"""Seconds for which a head that was handed on may be used."""
CHAIN_AGAIN = 300.0
"""Seconds after which a node is asked again which chain it serves."""
SHORT_PAUSE, LONGEST_PAUSE = 5.0, 120.0
"""Seconds. After a refusal that asks for a longer pause than the first, nothing is sent until the pause has passed.

It lasts at most for the second, whatever the node says: some write the time of day in place of seconds. Another node
confirms its own answers once all others have been silent for five minutes, and until then each of them must be asked.
"""
OTHERS_SECONDS = 2.0
"""Seconds within which the chain's other nodes have to state their newest block."""
LONGEST_QUANTITY = 66
"""Characters of 0x and 256 bits. Python writes no number of more than 4,300 digits into a message."""
HEXADECIMAL = re.compile("0x[0-9a-fA-F]{1,16}")
STALE_BLOCKS = 20
"""A head is stale when it is older than STALE_AFTER seconds and than this many usual block times."""


@dataclass(frozen=True, slots=True)
class Head:
    """A chain's newest block as one node sees it; its hash where the node gives one."""

    block: int
    time: datetime
    block_hash: str = ""


def stale_seconds(chain: Chain) -> float:
    """Return how many seconds old a node's newest block may be on a chain; an older one is not believed."""
    return max(STALE_AFTER, STALE_BLOCKS * chain.block_seconds)


_SharedHead = tuple[asyncio.Task[Head], question_time.TimedQuestion]


async def _joined(under_way: _SharedHead) -> Head:
    task, question = under_way
    with question_time.joined(question):
        return await asyncio.shield(task)


class Node:
    """A node's address and what we found out about it. Its URL may hold a key and is never shown.

    Requests take at most `request_seconds` from when their turn at the gate comes. During a long pause that the node
    asked for (Retry-After), nothing is sent, and ProviderBusy says how long it lasts. Errors: ProviderDown
    (NodeTimedOut, StateMissing), ProviderBusy, ProviderRefused (RpcRefused and its kinds, Unauthorized),
    ProviderConfused.
    """

    unit = "block"
    """What the chain counts, as messages name it."""

    def __init__(self, chain: Chain, index: int, url: str, *, request_seconds: float) -> None:
        self.chain, self.index, self.url = chain, index, url
        self.name = f"{chain.title} (node {index + 1})"
        self.source = source_name(chain.title, index)
        self.resting_until = 0.0
        self._paused_until = 0.0
        self.request_seconds = request_seconds
        self._stale_after = stale_seconds(chain)
        self.others: Sequence[Node] = ()
        """The chain's other nodes, with which this one is compared."""
        self.mark = int.from_bytes(hashlib.sha256(url.encode()).digest()[:6])
        """A number from its URL: one node's answers never count for another that gets its place in the settings."""
        self._host = urlsplit(url).netloc.rpartition("@")[2]
        self._right_chain_until = 0.0
        self._track = HeadTrack(chain.block_seconds)
        self._asking: dict[bool, _SharedHead] = {}
        self._handed: tuple[Head, float] | None = None
        self._batches = BatchSize(url)
        self._calls = 0
        """The number of calls in batches so far. Their ids go on from there, so that a repeated answer is not accepted
        for another batch."""
        self._http = GatedClient(
            self.name, self._client, FairGate(CONNECTIONS, MOST_FOR_ONE, FOR_URGENT), one_server=True
        )

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers={"Content-Type": "application/json", "User-Agent": agent()},
            timeout=timeouts(self.request_seconds),
            follow_redirects=False,
            verify=tls(),
            limits=httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=KEPT_OPEN_SECONDS),
        )

    @property
    def silent_for(self) -> float | None:
        """For how many seconds the node has answered nobody; None while nothing is asked of it."""
        return self._http.silent_for

    async def close(self) -> None:
        """Close the connections."""
        for task, _ in list(self._asking.values()):
            task.cancel()
            await asyncio.wait([task])
        await self._http.close()

    async def call(self, method: str, params: Sequence[object], decode: Decode = orjson.loads) -> object:
        """Make one JSON-RPC call and return its result. Raises its error as a ProviderError."""
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)})
        return self._result(await self.post(body, decode), 1)

    async def batch(self, calls: Sequence[tuple[str, Sequence[object]]]) -> list[object | ProviderError]:
        """Make calls in one request, or in as few as the node takes; return each one's result or error, in their order.

        Raises ProviderError when the node fails, and TooMuch or NodeTimedOut when a request is too much for it.
        """

        async def ask(start: int, stop: int) -> list[object | ProviderError]:
            if stop - start > 1:
                return await self._batch(calls[start:stop])
            if self._batches.most != 1:
                with suppress(BatchRefused):
                    return await self._batch(calls[start:stop])
            return [await self._alone(*calls[start])]

        return await self._batches.ask(len(calls), ask)

    async def _alone(self, method: str, params: Sequence[object]) -> object | ProviderError:
        try:
            return await self.call(method, params)
        except RpcRefused as fault:
            return fault

    async def _batch(self, calls: Sequence[tuple[str, Sequence[object]]]) -> list[object | ProviderError]:
        numbers = range(self._calls, self._calls + len(calls))
        self._calls = numbers.stop
        body = orjson.dumps(
            [
                {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}
                for number, (method, params) in zip(numbers, calls, strict=True)
            ]
        )
        try:
            answer = unpacked(await self.post(body), len(calls))
            if not isinstance(answer, list):
                # A refusal of the whole batch comes as a single object.
                self._result(answer, None)
                raise ProviderConfused(self.name, "a batch answered with a single result")
        except ProviderError as fault:
            if is_about_the_batch(fault):
                raise BatchRefused(self.name, str(fault), status=getattr(fault, "status", 0)) from None
            raise
        found: dict[int, object] = {}
        for item in cast("list[object]", answer):
            number = cast("dict[str, object]", item).get("id") if isinstance(item, dict) else None
            if isinstance(number, int):
                found[number] = None if number in found else item  # of two answers to a call neither counts
        results: list[object | ProviderError] = []
        for number in numbers:
            try:
                results.append(self._result(found.get(number), number))
            except ProviderError as fault:
                results.append(fault)
        if all(one_by_one_refused(one) for one in results):
            raise BatchRefused(self.name, str(results[0]), status=200)
        return results

    def hand_on(self, head: Head) -> None:
        """Keep a head that has just been read for the first caller that needs this very block."""
        self._handed = head, monotonic()

    async def head_since(self, block: int) -> Head:
        """Return the newest block, at or after `block`, or the head that was just handed on if it is this very block.

        A head is handed on only once: a second read, which confirms the first, must see the blocks since.
        """
        handed, self._handed = self._handed, None
        if handed is not None and handed[0].block == block and monotonic() - handed[1] < HANDED_ON_FOR:
            return handed[0]
        return await self.head(block, alone=True)

    async def head(self, not_before_block: int = 0, *, alone: bool = False) -> Head:
        """Return the newest block, once this node has shown that it may be trusted.

        Raises ProviderConfused unless its chain id is right and its head is not stale, not further ahead than time
        allows, and at or after `not_before_block`. Nodes behind one address can be a block apart, so the last condition
        is given a few moments to become true. Callers at the same time share a request, except with `alone`; a shared
        head counts only if it is after `not_before_block`, since it may have been read before the caller asked.
        """
        place = provider_reports.node(self.chain.key, self.index)
        try:
            head = await self._head(not_before_block, alone=alone)
        except ProviderError as fault:
            provider_reports.failed(place, fault, is_basic=True)
            raise
        provider_reports.answered(place, head.block, head.time)
        return head

    async def settled(self, not_before_block: int = 0) -> Head:
        """Return the settled block below the newest one, which must be at or after `not_before_block`.

        On a chain that is still too short, it is the first block. Raises ProviderError, also when the node does not
        have the block.
        """
        newest = await self.head(not_before_block)
        number = max(0, newest.block - self.chain.settled_after)
        said = await self.call("eth_getBlockByNumber", (hex(number), False))
        found = block_in(self.name, said)
        if found.block != number:
            raise ProviderConfused(self.name, "it gives another block than the one that was asked for")
        return found

    async def _head(self, not_before_block: int, *, alone: bool) -> Head:
        head = await self._ask_newest() if alone else await self._shared(not_before_block)
        for _ in range(3):
            if head.block >= not_before_block:
                return head
            await asyncio.sleep(min(self.chain.block_seconds, 0.5))
            head = await self._ask_newest()
        if head.block >= not_before_block:
            return head
        raise provider_reports.Stale(self.name, f"its head {head.block} is before {self.unit} {not_before_block}")

    async def _shared(self, not_before_block: int) -> Head:
        """Return the answer to the request that is under way, or to a new one that others may join."""
        urgent = caller().urgent
        under_way = self._asking.get(urgent)
        if under_way is not None:
            head = await _joined(under_way)
            if not not_before_block or head.block > not_before_block:
                return head
            under_way = self._asking.get(urgent)
        if under_way is None:
            # It serves every caller that joins, so it counts against no tenant's share of the node.
            with on_behalf_of("", urgent=urgent), question_time.shared() as question:
                under_way = self._asking[urgent] = asyncio.create_task(self._ask_newest()), question
            under_way[0].add_done_callback(lambda task: self._asked(urgent, task))
        return await _joined(under_way)

    def _asked(self, urgent: bool, task: asyncio.Task[Head]) -> None:
        if urgent in self._asking and self._asking[urgent][0] is task:
            del self._asking[urgent]
        if not task.cancelled():
            # Read it, so that asyncio does not report the failure of a task without a caller.
            task.exception()

    async def _ask_newest(self) -> Head:
        await self._check_chain()
        return await self.read_head(await self.call("eth_getBlockByNumber", ("latest", False)))

    async def _check_chain(self) -> None:
        if monotonic() < self._right_chain_until:
            return
        self._right_chain_until = 0.0
        found = quantity(self.name, await self.call("eth_chainId", ()))
        if found != self.chain.chain_id:
            raise ProviderConfused(self.name, f"it serves chain {found}, not {self.chain.chain_id}")
        self._right_chain_until = monotonic() + CHAIN_AGAIN

    async def read_head(self, value: object) -> Head:
        """Return the newest block in an `eth_getBlockByNumber` answer.

        Raises ProviderConfused for a head that is stale, too far ahead, or not a block.
        """
        head = block_in(self.name, value)
        age = self._age(head.time)
        if age > self._stale_after and not (self.chain.pauses and await self._is_newest(head)):
            raise provider_reports.Stale(self.name, f"its head is {age:.0f} s old")
        if corrected_clock.is_ahead(head.time):
            raise ProviderConfused(self.name, "its head is dated in the future")
        await self._believe(head.block)
        return head

    def _age(self, time: datetime) -> float:
        return (corrected_clock.now() - time).total_seconds()

    async def _believe(self, block: int) -> None:
        if self._track.block is None:
            for number in await self._numbers_of_others():
                self._track.seed(number)
        if not self._track.believe(block):
            raise ProviderConfused(self.name, f"its head {block} is further ahead than time allows")

    async def _numbers_of_others(self) -> list[int]:
        """Return the heads of the chain's other nodes that answer soon, highest first."""
        said = await self._of_others("eth_blockNumber", ())
        return sorted(
            (int(one, 16) for one in said if isinstance(one, str) and HEXADECIMAL.fullmatch(one)), reverse=True
        )

    async def _is_newest(self, head: Head) -> bool:
        """Return whether an old head of a chain that makes no blocks while nothing happens is the newest there is.

        Another node must say the same; if there is no other, this one's clock must be right and it must not be syncing.
        """
        if self.others:
            said = await self._of_others("eth_getBlockByNumber", ("latest", False))
            with suppress(ProviderError):
                return any(block_in(self.name, one) == head and head.block_hash for one in said if one is not None)
            return False
        return corrected_clock.is_right(self._host) and await self.call("eth_syncing", ()) is False

    async def _of_others(self, method: str, params: Sequence[object]) -> list[object]:
        async def ask(node: Node) -> object:
            with suppress(ProviderError, TimeoutError):
                async with asyncio.timeout(OTHERS_SECONDS):
                    return await node.call(method, params)
            return None

        return await asyncio.gather(*(ask(node) for node in self.others))

    async def post(self, body: bytes, decode: Decode = orjson.loads) -> object:
        """Send one JSON-RPC body and return the decoded answer."""
        if self._pause_left() > 0:
            raise self._paused()
        with provider_reports.counted(provider_reports.node(self.chain.key, self.index)):
            return await self._post(body, decode)

    def _pause_left(self) -> float:
        return self._paused_until - asyncio.get_running_loop().time()

    def _paused(self) -> ProviderBusy:
        return ProviderBusy(self.name, "it asked for a pause", retry_after=max(0.0, self._pause_left()))

    async def _post(self, body: bytes, decode: Decode) -> object:
        try:
            sending = self._http.run(lambda http: self._exchange(http, body), self.request_seconds)
            received = await sending
        except TurnedAway:
            raise ProviderDown(self.name, "it answers nobody") from None
        except (TimeoutError, httpx.TimeoutException):
            raise NodeTimedOut(self.name, f"no answer within {self.request_seconds:g} s") from None
        except (httpx.TransportError, httpx.DecodingError) as fault:
            raise ProviderDown(self.name, no_answer(fault)) from None
        if received is None:
            raise self._paused()
        status, headers, content = received
        corrected_clock.note(self._host, headers)
        if status == 429:
            provider_reports.count(provider_reports.node(self.chain.key, self.index), provider_reports.THROTTLED)
        try:
            answer = decode(content)
        except orjson.JSONDecodeError:
            answer = None
        if status == 200 and answer is not None:
            return answer
        fault = http_fault(self.name, self.url, status, headers, answer)
        if fault.retry_after is not None and fault.retry_after > SHORT_PAUSE:
            until = asyncio.get_running_loop().time() + min(fault.retry_after, LONGEST_PAUSE)
            self._paused_until = max(self._paused_until, until)
        raise fault

    async def _exchange(self, http: httpx.AsyncClient, body: bytes) -> tuple[int, httpx.Headers, bytes] | None:
        """Return the answer's status, headers and content; None, with nothing sent, during a pause."""
        # Again, because a pause may have begun while the request waited for its turn. Not an error here, because the
        # client would count it as a request without an answer, and the node as silent.
        if self._pause_left() > 0:
            return None
        async with http.stream("POST", self.url, content=body) as answer:
            content = await read_at_most(answer, LARGEST_ANSWER)
            if content is None:
                raise TooMuch(self.name, "the answer is too large", status=200)
            return answer.status_code, answer.headers, content

    def _result(self, value: object, number: int | None) -> object:
        """Return the result in a JSON-RPC answer, whose id must be `number` if that is given."""
        if not isinstance(value, dict):
            raise ProviderConfused(self.name, "the answer is not JSON-RPC")
        answer = cast("dict[str, object]", value)
        error = answer.get("error")
        if isinstance(error, dict | str):
            raise refusal_in(cast("object", error), self.name, self.url)
        if "result" not in answer or (number is not None and answer.get("id") != number):
            raise ProviderConfused(self.name, "the answer is not JSON-RPC")
        return answer["result"]


async def patiently(node: Node, method: str, params: Sequence[object], decode: Decode = orjson.loads) -> object:
    """Return a call's result; retry for a moment, since a node behind a shared address may not have the block yet."""
    for pause in (0.2, 0.5):
        try:
            return await node.call(method, params, decode)
        except StateMissing:
            await asyncio.sleep(pause)
    return await node.call(method, params, decode)


def block_in(provider: str, value: object) -> Head:
    """Return the block in an `eth_getBlockByNumber` answer. Raises ProviderConfused if there is none."""
    if not isinstance(value, dict):
        raise ProviderConfused(provider, "its head is not a block")
    block = cast("dict[str, object]", value)
    number, moment = quantity(provider, block.get("number")), quantity(provider, block.get("timestamp"))
    if moment > corrected_clock.LATEST:
        raise ProviderConfused(provider, "its head is not a block")
    name = block.get("hash")
    return Head(number, datetime.fromtimestamp(moment, UTC), name if isinstance(name, str) else "")


def quantity(provider: str, value: object) -> int:
    """Return a JSON-RPC quantity ("0x1b4") as a number. Raises ProviderConfused for anything else."""
    try:
        if isinstance(value, str) and value.startswith("0x") and len(value) <= LONGEST_QUANTITY:
            return int(value, 16)
    except ValueError:
        pass
    raise ProviderConfused(provider, "a number is missing")


def binary(provider: str, value: object) -> bytes:
    """Return JSON-RPC data ("0x…") as bytes. Raises ProviderConfused for anything else."""
    try:
        if isinstance(value, str) and value.startswith("0x"):
            return bytes.fromhex(value[2:])
    except ValueError:
        pass
    raise ProviderConfused(provider, "the data is not hexadecimal")
