"""The answer to one JSON-RPC item at one front end: what is allowed, which history is gone, what a fault changes."""

from collections.abc import Callable
from typing import Any

import orjson

from sandbox.base.json_rpc import INVALID, NOT_FOUND, Item, failure, refusal, success
from sandbox.chains import methods, plans
from sandbox.chains.chain import Chain
from sandbox.chains.plans import Denial

_LATE_TAGS = ("safe", "finalized")
_IDS = 2**63
"""The development node reads whole numbers below this as ids; a full node gives back any number, true and false."""


def is_call(item: Any) -> bool:
    """Return whether the item names a method, and has no id that is an object or a list."""
    if not isinstance(item, dict) or isinstance(item.get("id"), dict | list):
        return False
    return isinstance(item.get("method"), str)


def is_notification(item: Any) -> bool:
    """Return whether the item is a call without an id, which a node carries out and does not answer."""
    return is_call(item) and "id" not in item


async def answer(chain: Chain, item: Any, kind: str | None, pinned: int | None) -> bytes:
    """Return the body of the answer to one item; it is empty for a notification.

    `kind` is a fault that changes answers (empty, zero), or None. `pinned` is the head of a node that has stopped, or
    None.
    """
    if not is_call(item):
        return refusal(item, -32600, "invalid request")
    if is_notification(item):
        await _said(chain, {**item, "id": 0}, kind, pinned)
        return b""
    id_ = item["id"]
    if isinstance(id_, str | None) or (type(id_) is int and abs(id_) < _IDS):
        return await _said(chain, item, kind, pinned)
    said = orjson.loads(await _said(chain, {**item, "id": 0}, kind, pinned))
    return orjson.dumps({**said, "id": id_})


async def _said(chain: Chain, item: Item, kind: str | None, pinned: int | None) -> bytes:
    """Return the body of the answer to a call whose id the development node reads."""
    method, params = item["method"], item.get("params") or []
    if method not in methods.OFFERED:
        return refusal(item, NOT_FOUND, f"the method {method} does not exist/is not available")
    if not isinstance(params, list):
        return refusal(item, INVALID, "non-array args")
    if (wrong := methods.unreadable(method, params)) is not None:
        return refusal(item, INVALID, wrong)
    item["params"] = params = methods.as_read(method, params)
    denial = denial_of(chain, item, pinned)
    if denial is not None:
        return failure(item, denial.error)
    if kind == "empty":
        return success(item, methods.emptiness(method))
    if method in methods.FIXED:
        return success(item, methods.FIXED[method])
    if method in methods.OF_LOGS and params and (wrong := await _out_of_range(chain, params[0], pinned)):
        return refusal(item, INVALID, wrong)
    if pinned is None:
        if method == "eth_blockNumber" or (method == "eth_getBlockByNumber" and params[:1] and _is_head(params[0])):
            await chain.freshen()
    else:
        if method == "eth_blockNumber":
            return success(item, hex(pinned))
        refused = await _by_hash(chain, item, method, params, pinned) or _pin(chain, item, method, params, pinned)
        if refused is not None:
            return refused
    if method in methods.STATE_AT:
        refused = await _history(chain, item, params, methods.STATE_AT[method], pinned)
        if refused is not None:
            return refused
    if method == "eth_sendRawTransaction" and params and isinstance(params[0], str):
        return await chain.send_raw(orjson.dumps(item), params[0])
    said = await chain.node.post(orjson.dumps(item))
    if chain.facts.zksync and method in methods.OF_ZKSYNC:
        said = _changed(said, lambda result: methods.with_batches(method, result))
    if method in methods.OF_LOGS and (too_many := _too_many(chain, item, said, pinned)):
        return failure(item, too_many.error)
    if kind == "zero":
        return _changed(said, lambda result: methods.zeroed(method, result))
    if pinned is not None and method == "eth_getFilterLogs":
        return _changed(said, lambda result: [log for log in result if not _later(log, "blockNumber", pinned)])
    if pinned is not None and method in methods.FROM_A_BLOCK:
        where = methods.FROM_A_BLOCK[method]
        return _changed(said, lambda result: None if _later(result, where, pinned) else result)
    return said


def denial_of(chain: Chain, item: Any, pinned: int | None) -> Denial | None:
    """Return the refusal of the chain's plan that needs no lookup; None where the item is allowed."""
    method, params = item.get("method"), item.get("params") or []
    plan = chain.plan
    if plan is plans.UNLIMITED or not isinstance(params, list):
        return None
    if not plan.overrides and method == "eth_call" and len(params) > 2:
        return plans.NO_OVERRIDE
    if not plan.finalized:
        for tag in _blocks_named(method, params):
            if tag in _LATE_TAGS:
                return Denial({"code": -32000, "message": f"{tag} block not found"})
    if method in methods.OF_LOGS and params and isinstance(params[0], dict):
        return plans.logs_denied(plan, params[0], *_range(chain, params[0], pinned))
    return None


def _blocks_named(method: Any, params: list[Any]) -> list[Any]:
    """Return the parameters that may name a block; those of logs do so inside a filter, unless it names a hash."""
    if method not in methods.OF_LOGS:
        return params
    wanted = params[0] if params and isinstance(params[0], dict) else {}
    return [] if "blockHash" in wanted else [wanted.get("fromBlock"), wanted.get("toBlock")]


def _too_many(chain: Chain, item: Item, said: bytes, pinned: int | None) -> Denial | None:
    """Return the refusal of the chain's plan for an answer with too many logs; None where it is allowed."""
    if chain.plan.results is None:
        return None
    found = orjson.loads(said).get("result")
    wanted = item["params"][0] if item.get("params") and isinstance(item["params"][0], dict) else {}
    count = len(found) if isinstance(found, list) else 0
    return plans.results_denied(chain.plan, count, *_range(chain, wanted, pinned))


def _range(chain: Chain, wanted: Item, pinned: int | None) -> tuple[int, int]:
    """Return the first and the last block of a log filter; (0, 0), one block, for a filter by block hash."""
    if "blockHash" in wanted:
        return 0, 0
    head = chain.head if pinned is None else pinned
    first, last = (_place(chain, wanted.get(side, "latest"), head) for side in ("fromBlock", "toBlock"))
    return first, last


def _place(chain: Chain, block: Any, head: int) -> int:
    """Return the number of a block that a filter names, on a node with this head."""
    if block in _LATE_TAGS:
        return chain.settled(head, block)
    number = _number(block)
    return head if number is None else number


async def _out_of_range(chain: Chain, wanted: Item, pinned: int | None) -> str | None:
    """Return what the node says of a range that ends before it begins, or begins beyond its head; None for any other.

    One that ends beyond the head is answered for the blocks that are there, as by the versions of clients that most
    providers run. The newest ones refuse it as well (https://github.com/ethereum/execution-apis/pull/875).
    """
    first, last = _range(chain, wanted, pinned)
    if max(first, last) > chain.head and pinned is None:
        # The chain may be further than the sandbox has noted.
        await chain.note_head()
        first, last = _range(chain, wanted, None)
    if first > last:
        return "invalid block range params"
    head = chain.head if pinned is None else pinned
    return "block range extends beyond current head block" if first > head else None


def _is_head(block: Any) -> bool:
    return block in ("latest", "pending")


async def _by_hash(chain: Chain, item: Item, method: str, params: list[Any], pinned: int) -> bytes | None:
    """Return the answer of a node that stopped at `pinned` to a question about a later block's hash, or None."""
    if method == "eth_getFilterChanges":
        return success(item, [])
    named = methods.hash_of_block(method, params)
    if named is None or method in methods.STATE_AT:
        return None
    if not _later(await chain.node.call("eth_getBlockByHash", named, False), "number", pinned):
        return None
    return refusal(item, -32000, "unknown block") if method in methods.OF_LOGS else success(item, None)


def _pin(chain: Chain, item: Item, method: str, params: list[Any], pinned: int) -> bytes | None:
    """Limit the item to the chain as it was at `pinned`.

    Returns the answer where it is known without asking the node, as for a later block, and otherwise None.
    """
    if method == "eth_getLogs" and params and isinstance(params[0], dict) and "blockHash" not in params[0]:
        bounds = {**params[0]}
        for side in ("fromBlock", "toBlock"):
            bounds[side] = _pinned_block(chain, bounds.get(side, "latest"), pinned)
        first, last = _number(bounds["fromBlock"]), _number(bounds["toBlock"])
        if first is not None and first > pinned:
            return success(item, [])
        if last is not None and last > pinned:
            bounds["toBlock"] = hex(pinned)
        item["params"] = [bounds]
        return None
    position = methods.STATE_AT.get(method, methods.BLOCK_AT.get(method))
    if position is None:
        return None
    if len(params) > position:
        params[position] = _pinned_block(chain, params[position], pinned)
        number = _number(params[position])
        if number is not None and number > pinned:
            return success(item, None) if method in methods.BLOCK_AT else refusal(item, -32000, "header not found")
    elif len(params) == position:
        params.append(hex(pinned))
    item["params"] = params
    return None


def _pinned_block(chain: Chain, block: Any, pinned: int) -> Any:
    return hex(_place(chain, block, pinned)) if block in methods.HEAD_TAGS or block is None else block


async def _history(chain: Chain, item: Item, params: list[Any], position: int, pinned: int | None) -> bytes | None:
    """Return the error for a block whose state is gone (128 states are kept) or that does not exist yet, or None."""
    block = params[position] if len(params) > position else "latest"
    if isinstance(block, dict) and "blockHash" in block:
        header = await chain.node.call("eth_getBlockByHash", block["blockHash"], False)
        number = int(header["number"], 16) if header else None
        if number is None:
            return refusal(item, -32000, "header for hash not found")
    else:
        number = _number(block)
    if number is None:
        return None
    if pinned is None and number > chain.head:
        # The node's own socket sends a block before the sandbox has noted it.
        await chain.note_head()
    head = chain.head if pinned is None else pinned
    if number > head:
        return refusal(item, -32000, "header not found")
    if number <= head - plans.STATES:
        root = "0x" + f"{number:064x}"
        known = await chain.node.call("eth_getBlockByNumber", hex(number), False)
        if known:
            root = known["stateRoot"]
        return refusal(item, -32000, f"missing trie node {root[2:]} (path ) state {root} is not available, not found")
    return None


def _number(block: Any) -> int | None:
    if isinstance(block, dict):
        block = block.get("blockNumber")
    if block == "earliest":
        return 0
    if isinstance(block, int):
        return block
    try:
        return int(block, 16) if isinstance(block, str) else None
    except ValueError:
        return None


def _changed(said: bytes, change: Callable[[Any], Any]) -> bytes:
    parsed = orjson.loads(said)
    if "result" in parsed:
        parsed["result"] = change(parsed["result"])
    return orjson.dumps(parsed)


def _later(result: Any, where: str, pinned: int) -> bool:
    number = _number(result.get(where)) if isinstance(result, dict) else None
    return number is not None and number > pinned
