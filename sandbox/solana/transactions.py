"""The methods of a node about transactions, and the forms in which it shows one: compiled or parsed.

See docs/facts.md#solana-transactions.
"""

from typing import Any

from sandbox.base.json_rpc import INVALID
from sandbox.base.people import base58
from sandbox.solana.assets import FEE, Transaction
from sandbox.solana.keys import is_signature
from sandbox.solana.node import RpcError, View, blockhash, config_at, contextual, first_address, is_u64

MEMO = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"
MEMO_V1 = "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo"
SYSTEM = "11111111111111111111111111111111"
BUDGET = "ComputeBudget111111111111111111111111111111"
UNITS = base58(bytes([2]) + (40_000).to_bytes(4, "little"))


def get_signatures_for_address(view: View, params: list[Any]) -> Any:
    """Return signatures, newest first, from `before` (not included) back to `until` (not included)."""
    address, config = first_address(params), config_at(params, 1)
    limit = config.get("limit", 1000)
    if not is_u64(limit) or not 1 <= limit <= 1000:
        raise RpcError(INVALID, "Invalid limit; max 1000")
    _no_processed(config)
    head = view.head(config)
    sent = [one for one in reversed(view.ledger.transactions) if one.slot <= head]
    before, until = (_bound(config, name) for name in ("before", "until"))
    places = {one.signature: at for at, one in enumerate(sent)}
    if before is not None:
        sent = sent[places.get(before, len(sent)) + 1 :]
    if until in places:
        sent = sent[: max(0, places[until] - (len(places) - len(sent)))]
    return [_listed(view, one) for one in sent if one.mentions(address)][:limit]


def _no_processed(config: dict[str, Any]) -> None:
    if config.get("commitment") == "processed":
        raise RpcError(INVALID, "Method does not support commitment below `confirmed`")


def _listed(view: View, sent: Transaction) -> Any:
    memo = "; ".join(f"[{len(memo.encode())}] {memo}" for memo in sent.memos) or None
    return {
        "signature": sent.signature,
        "slot": sent.slot,
        "err": sent.err,
        "memo": memo,
        "blockTime": sent.time,
        "confirmationStatus": _status(view, sent),
    }


def _status(view: View, sent: Transaction) -> str:
    return "finalized" if sent.slot <= view.newest({}) else "confirmed"


def _outcome(sent: Transaction) -> Any:
    return {"Ok": None} if sent.err is None else {"Err": sent.err}


def get_signature_statuses(view: View, params: list[Any]) -> Any:
    """Return the states of up to 256 transactions; null for an unknown one."""
    signatures = params[0] if params else None
    if not isinstance(signatures, list) or len(signatures) > 256:
        raise RpcError(INVALID, "Invalid params: a list of at most 256 signatures is expected.")
    found: list[Any] = []
    for signature in signatures:
        sent = view.ledger.transaction(_signature(signature))
        if sent is None or sent.slot > view.slot:
            found.append(None)
            continue
        status = _status(view, sent)
        depth = None if status == "finalized" else view.slot - sent.slot
        shape = {"slot": sent.slot, "confirmations": depth, "err": sent.err, "status": _outcome(sent)}
        found.append({**shape, "confirmationStatus": status})
    return contextual(view.slot, found)


def get_transaction(view: View, params: list[Any]) -> Any:
    """Return one transaction, as json or jsonParsed; null for an unknown one. Nodes read no earliest slot here."""
    signature = _signature(params[0] if params else None)
    config = {"encoding": params[1]} if len(params) > 1 and isinstance(params[1], str) else config_at(params, 1)
    _no_processed(config)
    encoding = config.get("encoding") or "json"
    if encoding not in ("json", "jsonParsed"):
        raise RpcError(INVALID, "Invalid params: this node encodes transactions as json or jsonParsed.")
    sent = view.ledger.transaction(signature)
    if sent is None or sent.slot > view.newest(config):
        return None
    if config.get("maxSupportedTransactionVersion") is None:
        raise RpcError(
            -32015,
            "Transaction version (0) is not supported by the requesting client. Please try the request again with the "
            'following configuration parameter: "maxSupportedTransactionVersion": 0',
        )
    return shown(sent, parsed=encoding == "jsonParsed")


def _signature(given: Any) -> str:
    if not isinstance(given, str) or not is_signature(given):
        raise RpcError(INVALID, "Invalid param: Invalid")
    return given


def _bound(config: dict[str, Any], name: str) -> str | None:
    return None if config.get(name) is None else _signature(config[name])


def shown(sent: Transaction, *, parsed: bool) -> dict[str, Any]:
    """Return getTransaction's result, as jsonParsed or json."""
    programs = [BUDGET, SYSTEM, *([MEMO] if sent.memos else [])]
    keys = list(dict.fromkeys((*sent.signers, *sent.others, *programs)))
    logs = [
        line for program in programs[::2] for line in (f"Program {program} invoke [1]", f"Program {program} success")
    ]
    message: dict[str, Any] = {
        "accountKeys": [_key(sent, key) for key in keys] if parsed else keys,
        "addressTableLookups": [],
        "instructions": _parsed(sent) if parsed else _compiled(sent, keys),
        "recentBlockhash": blockhash(sent.slot - 5),
    }
    if not parsed:
        message["header"] = {
            "numRequiredSignatures": len(sent.signers),
            "numReadonlySignedAccounts": 0,
            "numReadonlyUnsignedAccounts": len(programs),
        }
    return {
        "slot": sent.slot,
        "blockTime": sent.time,
        "version": 0,
        "meta": {
            "err": sent.err,
            "status": _outcome(sent),
            "fee": FEE,
            "preBalances": [sent.before.get(key, 1) for key in keys],
            "postBalances": [sent.after.get(key, 1) for key in keys],
            "preTokenBalances": [],
            "postTokenBalances": [],
            "innerInstructions": [],
            "loadedAddresses": {"readonly": [], "writable": []},
            "rewards": [],
            "logMessages": logs,
            "computeUnitsConsumed": 450,
        },
        "transaction": {"signatures": [sent.signature], "message": message},
    }


def _key(sent: Transaction, key: str) -> dict[str, Any]:
    writable = key in sent.signers or key in sent.others
    return {"pubkey": key, "signer": key in sent.signers, "writable": writable, "source": "transaction"}


def _parsed(sent: Transaction) -> list[dict[str, Any]]:
    to = sent.others[0] if sent.others else sent.signers[0]
    info = {"source": sent.signers[0], "destination": to, "lamports": sent.lamports}
    return [
        {"programId": BUDGET, "accounts": [], "data": UNITS, "stackHeight": 1},
        {"program": "system", "programId": SYSTEM, "parsed": {"type": "transfer", "info": info}, "stackHeight": 1},
        *({"program": "spl-memo", "programId": MEMO, "parsed": memo, "stackHeight": 1} for memo in sent.memos),
    ]


def _compiled(sent: Transaction, keys: list[str]) -> list[dict[str, Any]]:
    to = keys.index(sent.others[0] if sent.others else sent.signers[0])
    data = base58(bytes([2, 0, 0, 0]) + sent.lamports.to_bytes(8, "little"))
    instructions = [(BUDGET, [], UNITS), (SYSTEM, [0, to], data)]
    instructions += [(MEMO, [0], base58(memo.encode())) for memo in sent.memos]
    return [
        {"programIdIndex": keys.index(program), "accounts": accounts, "data": data, "stackHeight": 1}
        for program, accounts, data in instructions
    ]
