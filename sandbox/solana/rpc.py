"""`/solana`: JSON-RPC over HTTP, on which faults act, with the methods of node and index."""

from typing import Any

from aiohttp import web

from sandbox.base.faults import Answer
from sandbox.base.json_rpc import INVALID, NOT_FOUND, as_json, joined, method_of, refusal, serve, success
from sandbox.solana import accounts, das, node, transactions
from sandbox.solana.chain import SolanaChain
from sandbox.solana.node import RpcError, View, config_at, contextual

TARGET = "solana"
MOST_IN_A_BATCH = 100
BROKEN = b'{"jsonrpc":"2.0","id":1,"result":{"items":['

HEADS: dict[str, node.Method] = {
    "getHealth": lambda _view, _params: "ok",
    "getVersion": lambda _view, _params: node.VERSION,
    "getGenesisHash": lambda _view, _params: node.GENESIS,
    "getSlot": node.get_slot,
    "getBlockHeight": node.get_block_height,
    "getBlockTime": node.get_block_time,
    "getLatestBlockhash": node.get_latest_blockhash,
}
"""The methods that a node which has lost its data still answers."""
DATA: dict[str, tuple[node.Method, Any]] = {
    "getBalance": (accounts.get_balance, 0),
    "getAccountInfo": (accounts.get_account_info, None),
    "getMultipleAccounts": (accounts.get_multiple_accounts, []),
    "getTokenAccountBalance": (accounts.get_token_account_balance, None),
    "getTokenLargestAccounts": (accounts.get_token_largest_accounts, []),
    "getTokenSupply": (accounts.get_token_supply, None),
    "getTokenAccountsByOwner": (accounts.get_token_accounts_by_owner, []),
    "getProgramAccounts": (accounts.get_program_accounts, []),
    "getSignaturesForAddress": (transactions.get_signatures_for_address, []),
    "getSignatureStatuses": (transactions.get_signature_statuses, []),
    "getTransaction": (transactions.get_transaction, None),
}
"""Each method with its empty answer, inside a context where `CONTEXTUAL` says so."""
CONTEXTUAL = (
    "getBalance",
    "getAccountInfo",
    "getMultipleAccounts",
    "getTokenAccountsByOwner",
    "getTokenAccountBalance",
    "getTokenLargestAccounts",
    "getTokenSupply",
    "getSignatureStatuses",
)


def routes(solana: SolanaChain) -> list[web.RouteDef]:
    """Return the route of node and index, which share one address."""

    async def respond(kind: str | None, items: list[Any], many: bool) -> web.StreamResponse:
        if not items or len(items) > MOST_IN_A_BATCH:
            return as_json(refusal(None, -32600, "Invalid request"))
        for budget, methods in ((solana.lists, das.LISTS), (solana.scans, ("getProgramAccounts",))):
            if budget is not None and not all(budget.spend() for item in items if method_of(item) in methods):
                return _too_many(items, many)
        view = _view(solana, kind)
        return as_json(joined([_answer(view, item, kind) for item in items], many))

    async def answered(request: web.Request) -> web.StreamResponse:
        return await serve(solana.sandbox, request, TARGET, _faulty, respond, "Parse error")

    return [web.post("/solana", answered), web.post("/solana/", answered)]


def _faulty(items: list[Any], many: bool) -> dict[str, Answer]:
    """Return the endpoint's own answers to these calls under the faults that need no ledger."""
    return {"429": lambda _: _too_many(items, many), "malformed": lambda _: as_json(BROKEN)}


def _too_many(items: list[Any], many: bool) -> web.Response:
    said = joined([refusal(item, -32429, "rate limited") for item in items], many)
    return as_json(said, 429, {"Retry-After": "1"})


def _view(solana: SolanaChain, kind: str | None) -> View:
    fault = solana.sandbox.faults.fault(TARGET)
    slot = solana.head_at(fault.since) if fault and kind == "stale" else solana.ledger.slots.now()
    return View(solana.ledger, slot, solana.ledger.holdings(slot), solana.sandbox.url, kind == "zero")


def _answer(view: View, item: Any, kind: str | None) -> bytes:
    """Return the body of the answer to one item; it is empty for a notification."""
    if not isinstance(item, dict) or not _is_id(item.get("id")):
        return refusal(None, -32600, "Invalid request")
    if not isinstance(item.get("method"), str):
        return refusal(item, -32600, "Invalid request")
    if "id" not in item:
        return b""
    method, params = item["method"], item.get("params")
    try:
        if method in das.METHODS:
            act, order = das.METHODS[method]
            named = _named(params, order)
            return success(item, das.emptiness(view, method, named) if kind == "empty" else act(view, named))
        placed: Any = [] if params is None else params
        if method not in HEADS and method not in DATA:
            return refusal(item, NOT_FOUND, "Method not found")
        if not isinstance(placed, list):
            raise RpcError(INVALID, "`params` should be an array")
        if method in HEADS:
            return success(item, HEADS[method](view, placed))
        return success(item, _emptiness(view, method, placed) if kind == "empty" else DATA[method][0](view, placed))
    except RpcError as refused:
        return refusal(item, refused.code, refused.message, refused.data)


def _emptiness(view: View, method: str, params: list[Any]) -> Any:
    """Return the answer of a method of DATA under the fault `empty`."""
    nothing = DATA[method][1]
    if method == "getProgramAccounts" and config_at(params, 1).get("withContext") is True:
        return contextual(view.slot, nothing)
    return contextual(view.slot, nothing) if method in CONTEXTUAL else nothing


def _is_id(value: Any) -> bool:
    """Return whether a node reads the value as an id: null, text, or a whole number of 64 bits without a sign."""
    return isinstance(value, str | None) or (type(value) is int and value >= 0)


def _named(params: Any, order: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(params, dict):
        return params
    if isinstance(params, list) and len(params) <= len(order):
        return dict(zip(order, params, strict=False))
    raise RpcError(INVALID, "Invalid params: named parameters are expected.")
