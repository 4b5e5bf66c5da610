"""The methods that a full node offers to the public, and the parameter in which each names its block."""

from typing import Any

CLIENT = "Geth/v1.16.7-stable/linux-amd64/go1.25.1"
# A full node keeps the state of this many blocks.
STATES = 128

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
}
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
    "eth_simulateV1",
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
