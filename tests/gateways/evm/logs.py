"""A log as a node gives it, and the wallets and the contract that tests use in it."""

from typing import Any

ALICE, BOB, CAROL = ("0x" + digit * 40 for digit in "abc")
CONTRACT = "0x" + "77" * 20


def topic(address: str) -> str:
    return "0x" + 24 * "0" + address[2:]


def log(*topics: str, block: int = 7, address: str = CONTRACT) -> dict[str, Any]:
    return {
        "address": address,
        "topics": list(topics),
        "blockNumber": hex(block),
        "blockHash": f"0x{block}",
        "data": "0x",
    }
