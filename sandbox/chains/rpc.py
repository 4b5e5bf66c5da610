"""`/rpc/<chain>` and `/rpc2/<chain>`: two independent front ends to each node, on which faults act."""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from sandbox.base.faults import SLOW_SECONDS, Answer, hang_up
from sandbox.base.json_rpc import as_json, failure, joined, method_of, refusal, serve, success
from sandbox.base.sandbox import Sandbox
from sandbox.chains import methods
from sandbox.chains.answers import answer, denial_of, is_call, is_notification
from sandbox.chains.anvil import NodeGone
from sandbox.chains.chain import Chain

FRONTS = ("rpc", "rpc2")
AT_ONCE = 16
LONGEST_BODY, LONGEST_MESSAGE = 5 * 2**20, 32 * 2**20
"""The bytes of a request over HTTP and of a message on a WebSocket that Geth reads (its package rpc)."""
TOO_MANY = "Too many requests: this endpoint's limit per second is used up."
BROKEN = b'{"jsonrpc":"2.0","id":1,"result":"0x'
_FAULTS_THAT_ANSWER = ("429", "500", "malformed")
_SUBSCRIBING = ("eth_subscribe", "eth_unsubscribe")


def routes(sandbox: Sandbox, chains: Mapping[str, Chain]) -> list[web.RouteDef]:
    """Return the HTTP and WebSocket routes of both front ends."""

    def front(name: str) -> list[web.RouteDef]:
        async def serve(request: web.Request) -> web.StreamResponse:
            chain = chains.get(request.match_info["chain"])
            if chain is None:
                raise web.HTTPNotFound(text="There is no such chain.")
            if request.headers.get("Upgrade", "").lower() == "websocket":
                return await _Socket(sandbox, chain, name).serve(request)
            if request.method != "POST":
                raise web.HTTPMethodNotAllowed(request.method, ["POST"])
            return await _http(sandbox, chain, name, request)

        return [web.post(f"/{name}/{{chain}}", serve), web.get(f"/{name}/{{chain}}", serve)]

    return [route for name in FRONTS for route in front(name)]


def pinned_head(sandbox: Sandbox, chain: Chain, target: str) -> int | None:
    """Return the head at which a stale front end stopped; None for one that is not stale."""
    fault = sandbox.faults.fault(target)
    return chain.head_at(fault.since) if fault and fault.kind == "stale" else None


async def _http(sandbox: Sandbox, chain: Chain, name: str, request: web.Request) -> web.StreamResponse:
    target = f"{name}:{chain.facts.name}"
    size = request.content_length or 0
    if size > LONGEST_BODY:
        return web.Response(status=413, text=f"content length too large ({size}>{LONGEST_BODY})\n")

    async def respond(kind: str | None, items: list[Any], many: bool) -> web.StreamResponse:
        if many and not items:
            return as_json(refusal(None, -32600, "empty batch"))
        pinned = pinned_head(sandbox, chain, target)
        too_large = batch_refusal(chain, items) if many else None
        if too_large is not None:
            return as_json(*too_large)
        if not chain.running.is_set():
            return hang_up(request)
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(item: Any) -> bytes:
            async with turn:
                return await answer(chain, item, kind, pinned)

        # Some providers also refuse with the HTTP status; in a batch each item has only its own answer.
        denial = denial_of(chain, items[0], pinned) if not many and isinstance(items[0], dict) else None
        status = denial.status if denial else 200
        try:
            said = await asyncio.gather(*map(one, items))
        except NodeGone:
            return hang_up(request)
        return as_json(joined(said, many), status)

    return await serve(sandbox, request, target, _faulty, respond, "parse error")


def _faulty(items: list[Any], many: bool) -> dict[str, Answer]:
    """Return the front end's own answers to these calls under the faults that need no node."""
    too_many = joined([refusal(item, 429, TOO_MANY) for item in items], many)
    return {"429": lambda _: as_json(too_many, 429, {"Retry-After": "1"}), "malformed": lambda _: as_json(BROKEN)}


def batch_refusal(chain: Chain, items: list[Any]) -> tuple[bytes, int] | None:
    """Return the body and HTTP status of the chain plan's refusal of so large a batch; None where it is allowed."""
    plan = chain.plan
    if plan.batch is None or plan.batch_denied is None or len(items) <= plan.batch:
        return None
    denial = plan.batch_denied(plan.batch)
    # A refusal in a list has the first call's id; one without a list has none.
    said = failure(items[0] if denial.in_a_list else None, denial.error)
    return b"[" + said + b"]" if denial.in_a_list else said, denial.status


class _Socket:
    """One client's WebSocket. Subscriptions go to the node's own socket; everything else is answered as over HTTP."""

    def __init__(self, sandbox: Sandbox, chain: Chain, name: str) -> None:
        self._sandbox = sandbox
        self._chain = chain
        self._target = f"{name}:{chain.facts.name}"
        self._client = web.WebSocketResponse(max_msg_size=LONGEST_MESSAGE)
        self._ids = itertools.count()
        self._subscribing: dict[int, dict[str, Any]] = {}
        """The calls that the node's own socket has not answered yet, by the ids that they have there."""
        self._in_batch: dict[int, asyncio.Future[dict[str, Any]]] = {}
        """The same for calls of a batch: their answers go out with the batch's."""
        self._held: list[str] | None = None
        """Events that came while a batch is answered; a client has to learn its subscription's id first."""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve the client until either side closes."""
        kind = self._sandbox.faults.active(self._target)
        if kind == "down" or not self._chain.running.is_set():
            return hang_up(request)
        if kind == "429":
            return as_json(refusal(None, 429, TOO_MANY), 429, {"Retry-After": "1"})
        if kind == "500":
            return web.Response(status=500, text="Internal Server Error")
        await self._client.prepare(request)
        node = self._chain.node
        try:
            async with node.session.ws_connect(node.url, max_msg_size=0) as upstream:
                await self._talk(upstream, request)
        except (NodeGone, aiohttp.ClientError):
            hang_up(request)
        return self._client

    async def _talk(self, upstream: aiohttp.ClientWebSocketResponse, request: web.Request) -> None:
        back = asyncio.create_task(self._forward(upstream))

        def ended(done: asyncio.Task[None]) -> None:
            # A node that ends takes the subscriptions with it, so the client has to notice.
            if not done.cancelled():
                done.exception()
                hang_up(request)
                for answered in self._in_batch.values():
                    answered.set_exception(NodeGone("The node ended."))
                self._in_batch.clear()

        back.add_done_callback(ended)
        try:
            async for message in self._client:
                if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                    break
                await self._take(message.data, upstream, request)
        finally:
            back.cancel()

    async def _forward(self, upstream: aiohttp.ClientWebSocketResponse) -> None:
        """Pass on the node's answers to subscriptions and its events; a front end with a fault loses the events."""
        async for message in upstream:
            if message.type != aiohttp.WSMsgType.TEXT:
                continue
            said = orjson.loads(message.data)
            if (answered := self._in_batch.pop(said.get("id"), None)) is not None:
                answered.set_result(said)
                continue
            if "id" not in said:
                if self._sandbox.faults.active(self._target) is not None:
                    continue
                if self._held is None:
                    await self._client.send_str(message.data)
                else:
                    self._held.append(message.data)
                continue
            call = self._subscribing.pop(said["id"], said)
            if not is_notification(call):
                await self._client.send_str(orjson.dumps({**said, "id": call["id"]}).decode())

    async def _take(self, data: str | bytes, upstream: aiohttp.ClientWebSocketResponse, request: web.Request) -> None:
        kind, readable = self._sandbox.faults.active(self._target), True
        try:
            asked = orjson.loads(data)
        except orjson.JSONDecodeError:
            asked, readable = None, False
        items: list[Any] = asked if isinstance(asked, list) else [asked]
        for item in items:
            status = 0 if kind == "down" else 200
            self._sandbox.traffic.note(self._target, "WS", request.path_qs, status, method_of(item))
        if kind == "down":
            await self._client.close(code=aiohttp.WSCloseCode.ABNORMAL_CLOSURE)
            return
        if kind == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        if not readable and kind not in _FAULTS_THAT_ANSWER:
            await self._client.send_str(refusal(None, -32700, "parse error").decode())
            return
        if not items:
            await self._client.send_str(refusal(None, -32600, "empty batch").decode())
            return
        too_large = batch_refusal(self._chain, items) if isinstance(asked, list) else None
        if too_large is not None:
            await self._client.send_str(too_large[0].decode())
            return
        many = isinstance(asked, list)
        self._held = [] if many else None
        said = joined([await self._reply(item, kind, upstream, many=many) for item in items], many)
        if said:
            await self._client.send_str(said.decode())
        while self._held:
            await self._client.send_str(self._held.pop(0))
        self._held = None

    async def _reply(
        self, item: Any, kind: str | None, upstream: aiohttp.ClientWebSocketResponse, *, many: bool
    ) -> bytes:
        """Return the answer; it is empty for a notification, and for a subscription outside a batch.

        Such a subscription is answered by the node's own socket.
        """
        if kind in _FAULTS_THAT_ANSWER and is_notification(item):
            return b""
        if kind == "429":
            return refusal(item, 429, TOO_MANY)
        if kind == "500":
            return refusal(item, -32603, "internal error")
        if kind == "malformed":
            return BROKEN
        if method_of(item) in _SUBSCRIBING and is_call(item):
            if kind == "empty":
                return b"" if is_notification(item) else success(item, None)
            wrong = methods.no_subscription(item.get("params")) if item["method"] == "eth_subscribe" else None
            if wrong is not None:
                return b"" if is_notification(item) else refusal(item, *wrong)
            if many:
                return await self._answered(item, upstream)
            number = next(self._ids)
            self._subscribing[number] = item
            await upstream.send_str(orjson.dumps({**item, "id": number}).decode())
            return b""
        return await answer(self._chain, item, kind, pinned_head(self._sandbox, self._chain, self._target))

    async def _answered(self, item: dict[str, Any], upstream: aiohttp.ClientWebSocketResponse) -> bytes:
        """Ask the node's own socket for a call of a batch, and return its answer. Raises NodeGone."""
        number, answered = next(self._ids), asyncio.get_running_loop().create_future()
        self._in_batch[number] = answered
        await upstream.send_str(orjson.dumps({**item, "id": number}).decode())
        said = await answered
        return b"" if is_notification(item) else orjson.dumps({**said, "id": item["id"]})
