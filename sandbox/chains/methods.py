"""The methods that a full node offers to the public, and what it reads in their parameters.

It refuses what it cannot read, as Geth does (its `rpc.BlockNumber`): the development node behind it ends when it is
asked for a huge number of fees.
"""

import json
import re
from typing import Any

from sandbox.base.json_rpc import INVALID, NOT_FOUND

CLIENT = "Geth/v1.16.7-stable/linux-amd64/go1.25.1"

# method → position of the block among its parameters, for methods that need that block's state
STATE_AT = {
    "eth_call": 1,
    "eth_createAccessList": 1,
    "eth_estimateGas": 1,
    "eth_getBalance": 1,
    "eth_getCode": 1,
    "eth_getProof": 2,
    "eth_getStorageAt": 2,
    "eth_getTransactionCount": 1,
    "eth_simulateV1": 1,
}
# those of them that read the newest block where none is named
_ANY_BLOCK = ("eth_call", "eth_createAccessList", "eth_estimateGas", "eth_simulateV1")
# the same, for methods that need only the block itself
BLOCK_AT = {
    "eth_feeHistory": 1,
    "eth_getBlockByNumber": 0,
    "eth_getBlockReceipts": 0,
    "eth_getBlockTransactionCountByNumber": 0,
    "eth_getTransactionByBlockNumberAndIndex": 0,
}
# method → the field with the block's number, for methods whose answer is null or has such a field
FROM_A_BLOCK = {
    "eth_getBlockByHash": "number",
    "eth_getTransactionByBlockHashAndIndex": "blockNumber",
    "eth_getTransactionByHash": "blockNumber",
    "eth_getTransactionReceipt": "blockNumber",
}
# methods that take a block's hash in place of its number: as an object, or as it is
BY_HASH_TOO = {*STATE_AT, "eth_getBlockReceipts"}
OF_ZKSYNC = ("eth_getTransactionReceipt", "eth_getBlockReceipts", "eth_getTransactionByHash")
OFFERED = {
    *STATE_AT,
    *BLOCK_AT,
    *FROM_A_BLOCK,
    "eth_accounts",
    "eth_blobBaseFee",
    "eth_blockNumber",
    "eth_chainId",
    "eth_gasPrice",
    "eth_getBlockTransactionCountByHash",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_getLogs",
    "eth_maxPriorityFeePerGas",
    "eth_newBlockFilter",
    "eth_newFilter",
    "eth_sendRawTransaction",
    "eth_syncing",
    "eth_uninstallFilter",
    "net_listening",
    "net_peerCount",
    "net_version",
    "web3_clientVersion",
    "web3_sha3",
}
# Fixed answers, where the development node would answer in its own way.
FIXED: dict[str, Any] = {
    "eth_accounts": [],
    "eth_syncing": False,
    "net_listening": True,
    "net_peerCount": "0x19",
    "web3_clientVersion": CLIENT,
}
HEAD_TAGS = ("latest", "pending", "safe", "finalized")
_NO_ANSWER = {*FROM_A_BLOCK, *BLOCK_AT, "eth_createAccessList", "eth_getProof"}
_LISTS = {"eth_getLogs", "eth_getFilterLogs", "eth_getFilterChanges", "eth_getBlockReceipts", "eth_accounts"}
SUBSCRIPTIONS = ("newHeads", "logs", "newPendingTransactions", "syncing")
MOST_FEES = 1024
"""The most blocks of one `eth_feeHistory`; a node answers for the last so many of a longer one."""
_QUANTITY = re.compile(r"0x(0|[1-9a-fA-F][0-9a-fA-F]{0,15})")
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
OF_LOGS = ("eth_getLogs", "eth_newFilter")


def emptiness(method: str) -> Any:
    """Return the answer of a node that has no data: no bytes, no logs, no such block."""
    if method in _LISTS:
        return []
    return None if method in _NO_ANSWER or method in FIXED else "0x"


def with_batches(method: str, result: Any) -> Any:
    """Return a receipt or transaction with ZKsync's additional fields: its batch on layer 1, not sealed yet."""
    if method == "eth_getBlockReceipts" and isinstance(result, list):
        return [with_batches("eth_getTransactionReceipt", receipt) for receipt in result]
    if method not in OF_ZKSYNC or not isinstance(result, dict):
        return result
    batch: dict[str, Any] = {"l1BatchNumber": None, "l1BatchTxIndex": None}
    if method != "eth_getTransactionReceipt":
        return {**result, **batch}
    logs = [
        {**log, "l1BatchNumber": None, "transactionLogIndex": hex(place), "logType": None}
        for place, log in enumerate(result["logs"])
    ]
    return {**result, **batch, "l2ToL1Logs": [], "logs": logs}


def zeroed(method: str, result: Any) -> Any:
    """Return the same answer with every balance 0: as many bytes as the true answer, all of them zero."""
    if method == "eth_call" and isinstance(result, str):
        return "0x" + "0" * (len(result) - 2)
    return "0x0" if method == "eth_getBalance" else result


def unreadable(method: str, params: list[Any]) -> str | None:
    """Return what the node says of the first parameter that it cannot read; None if it can read them all."""
    if method in OF_LOGS and params:
        return _of_filter(params[0])
    if (method in FROM_A_BLOCK or method == "eth_getBlockTransactionCountByHash") and params:
        return None if _is_hash(params[0]) else "invalid argument 0: a hash of 32 bytes is expected"
    place = STATE_AT.get(method, BLOCK_AT.get(method))
    if place is not None and len(params) > place and (wrong := _of_block(method, params[place])):
        return wrong.format(place)
    if method == "eth_feeHistory" and params and not (_is_number(params[0]) or _is_count(params[0])):
        return "invalid argument 0: a number of blocks is expected"
    return None


def _of_block(method: str, given: Any) -> str | None:
    if given is None:
        return None if method in _ANY_BLOCK else "missing value for required argument {}"
    if _is_block(given) or (method in BY_HASH_TOO and _names_a_block(given)):
        return None
    return "invalid argument {}: a block's number, tag or hash is expected"


def no_subscription(params: Any) -> tuple[int, str] | None:
    """Return the code and the words with which Geth refuses such a subscription; None where there is one.

    Source: `handleSubscribe` and `parseSubscriptionName` of Geth's `rpc` package.
    """
    if not isinstance(params, list):
        return INVALID, "non-array args"
    if not params or not isinstance(params[0], str):
        return INVALID, "expected subscription name as first argument"
    if params[0] in SUBSCRIPTIONS:
        return None
    return NOT_FOUND, f"no {json.dumps(params[0], ensure_ascii=False)} subscription in eth namespace"


def hash_of_block(method: str, params: list[Any]) -> Any:
    """Return the hash by which a call names the block that it is about, or None."""
    place = STATE_AT.get(method, BLOCK_AT.get(method, 0))
    given = params[place] if len(params) > place else None
    if method == "eth_getBlockTransactionCountByHash":
        return given
    return given.get("blockHash") if isinstance(given, dict) else None


def as_read(method: str, params: list[Any]) -> list[Any]:
    """Return the parameters: a hash of a block as an object, and no more blocks of fees than a node answers for."""
    place = STATE_AT.get(method, BLOCK_AT.get(method, 0))
    if method in BY_HASH_TOO and len(params) > place and _is_hash(params[place]):
        return [*params[:place], {"blockHash": params[place]}, *params[place + 1 :]]
    if method != "eth_feeHistory" or not params:
        return params
    count = params[0] if isinstance(params[0], int) else int(params[0], 16)
    return [hex(min(count, MOST_FEES)), *params[1:]]


def _of_filter(given: Any) -> str | None:
    if not isinstance(given, dict):
        return "invalid argument 0: a filter is expected"
    if "blockHash" in given:
        return None if _is_hash(given["blockHash"]) else "invalid argument 0: blockHash is a hash of 32 bytes"
    for side in ("fromBlock", "toBlock"):
        if given.get(side) is not None and not _is_block(given[side]):
            return f"invalid argument 0: {side} is a block's number or tag"
    return None


def _is_block(given: Any) -> bool:
    """Return whether it is what Geth's `rpc.BlockNumber` reads: a number, or a tag."""
    return isinstance(given, str) and (given in (*HEAD_TAGS, "earliest") or _is_number(given))


def _names_a_block(given: Any) -> bool:
    """Return whether it is what Geth's `rpc.BlockNumberOrHash` reads besides: a hash, or an object with either."""
    if isinstance(given, dict):
        return _is_hash(given["blockHash"]) if "blockHash" in given else _is_block(given.get("blockNumber"))
    return _is_hash(given)


def _is_number(given: Any) -> bool:
    """Return whether it is a number of a block: the node's are signed and have 64 bits."""
    return isinstance(given, str) and _QUANTITY.fullmatch(given) is not None and int(given, 16) < 2**63


def _is_count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 2**63


def _is_hash(given: Any) -> bool:
    return isinstance(given, str) and _HASH.fullmatch(given) is not None
