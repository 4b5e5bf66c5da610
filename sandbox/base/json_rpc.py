"""JSON-RPC over HTTP: calls, alone or in a batch, are read, noted in the log of requests, and answered."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from sandbox.base.faults import Answer
from sandbox.base.sandbox import Sandbox
from sandbox.base.traffic import HUNG_UP, NOTED

INVALID, NOT_FOUND = -32602, -32601
"""The codes of errors about parameters that a method does not take, and about methods that nobody has."""
Item = dict[str, Any]
Faulty = Callable[[list[Any], bool], Mapping[str, Answer]]
"""From the calls, and whether they are a batch, to the answers under the faults that need no data, by their kinds."""
Respond = Callable[[str | None, list[Any], bool], Awaitable[web.StreamResponse]]
"""From the kind of the running fault, the calls, and whether they are a batch, to the answer."""


async def serve(
    sandbox: Sandbox, request: web.Request, target: str, faulty: Faulty, respond: Respond, unreadable: str
) -> web.StreamResponse:
    """Answer the calls in a request; `unreadable` is what the provider says of a body that is not JSON."""
    body = await request.read()
    kind = sandbox.faults.active(target)
    try:
        asked = orjson.loads(body)
    except orjson.JSONDecodeError:
        # A provider that is down or refuses everything does so before it reads a body.
        answer = await sandbox.faults.apply(request, target, faulty([None], False))
        return as_json(refusal(None, -32700, unreadable)) if answer is None else answer
    many = isinstance(asked, list)
    items: list[Any] = asked if many else [asked]
    request[NOTED] = True
    # Noted on arrival: a client of a slow provider gives up long before the answer.
    notes = [sandbox.traffic.note(target, "POST", request.path_qs, 0, method_of(item)) for item in items]
    response = await sandbox.faults.apply(request, target, faulty(items, many))
    if response is None:
        response = await respond(kind, items, many)
    status = 0 if request.get(HUNG_UP) else response.status
    sizes = [_size_of(response), *([0] * (len(items) - 1))]
    for note, size in zip(notes, sizes, strict=False):
        sandbox.traffic.answered(note, status, size)
    return response


def refusal(item: Any, code: int, message: str, data: Item | None = None) -> bytes:
    """Return the error for a call, with `data` where there are any."""
    return failure(item, {"code": code, "message": message, **({} if data is None else {"data": data})})


def failure(item: Any, error: Item) -> bytes:
    """Return this error for a call."""
    return orjson.dumps({"jsonrpc": "2.0", "id": _id_of(item), "error": error})


def success(item: Item, result: Any) -> bytes:
    """Return the result for a call."""
    return orjson.dumps({"jsonrpc": "2.0", "id": item.get("id"), "result": result})


def _id_of(item: Any) -> Any:
    """Return the id of a call; None where it has none, or one that a node does not read."""
    id_ = item.get("id") if isinstance(item, dict) else None
    return None if isinstance(id_, dict | list) else id_


def method_of(item: Any) -> str:
    """Return the method of a call for the log, cut to 80 characters since a client chose the text."""
    return str(item.get("method"))[:80] if isinstance(item, dict) else "?"


def joined(said: list[bytes], many: bool) -> bytes:
    """Return the answers as one body. Notifications have none; the body is empty where nothing is answered."""
    given = [one for one in said if one]
    return b"[" + b",".join(given) + b"]" if many and given else b"".join(given)


def as_json(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a response with this body."""
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def _size_of(response: web.StreamResponse) -> int:
    """Return the size of an answer's body in bytes; 0 where it has none."""
    return len(response.body) if isinstance(response, web.Response) and isinstance(response.body, bytes) else 0
