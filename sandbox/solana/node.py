"""What all methods of a Solana node share: the view of a request, its parameters, its errors; and the slots."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeGuard

from sandbox.base.json_rpc import INVALID
from sandbox.base.people import base58
from sandbox.solana.assets import Holdings
from sandbox.solana.keys import is_address
from sandbox.solana.ledger import TO_FINAL, Ledger

GENESIS = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
VERSION = {"solana-core": "2.3.6", "feature-set": 3640012085}
BEHIND = 24_000_000
"""How much less a block's height is than its slot: many slots were skipped over the years."""
COMMITMENTS = ("processed", "confirmed", "finalized")
ENCODINGS = ("binary", "base58", "base64", "base64+zstd", "json", "jsonParsed")


class RpcError(Exception):
    """A JSON-RPC error; some have `data`."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True)
class View:
    """What one request sees: the ledger as of its newest slot, and what the fault `zero` hides."""

    ledger: Ledger
    slot: int
    holdings: Holdings
    url: str
    zero: bool = False

    def newest(self, config: dict[str, Any]) -> int:
        """Return the newest slot of a commitment; `finalized` is the default."""
        return self.slot - (TO_FINAL - 1 if config.get("commitment") in (None, "finalized") else 0)

    def head(self, config: dict[str, Any]) -> int:
        """Return the same. Raises RpcError where it is before the earliest slot that the request accepts."""
        newest, least = self.newest(config), config.get("minContextSlot")
        if least is not None and not is_u64(least):
            raise RpcError(INVALID, "Invalid params: invalid type: expected u64.")
        if newest < (least or 0):
            raise RpcError(-32016, "Minimum context slot has not been reached", {"contextSlot": newest})
        return newest


Method = Callable[[View, list[Any]], Any]


def is_u64(given: object) -> TypeGuard[int]:
    """Return whether it is a whole number of 64 bits without a sign."""
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 2**64


def config_at(params: list[Any], at: int) -> dict[str, Any]:
    """Return the configuration at this place among the parameters, empty if there is none. Raises RpcError."""
    given = params[at] if len(params) > at else None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise RpcError(INVALID, "Invalid params: invalid type: expected a configuration object.")
    for name, known in (("commitment", COMMITMENTS), ("encoding", ENCODINGS)):
        if given.get(name) not in (None, *known):
            raise RpcError(INVALID, f"Invalid params: unknown variant of {name}.")
    return given


def first_address(params: list[Any]) -> str:
    """Return the first parameter, an address. Raises RpcError."""
    given = params[0] if params else None
    if not isinstance(given, str) or not is_address(given):
        raise RpcError(INVALID, "Invalid param: Invalid")
    return given


def get_slot(view: View, params: list[Any]) -> int:
    """Return the newest slot of a commitment."""
    return view.head(config_at(params, 0))


def get_block_height(view: View, params: list[Any]) -> int:
    """Return the number of blocks, which is smaller than that of slots."""
    return view.head(config_at(params, 0)) - BEHIND


def get_block_time(view: View, params: list[Any]) -> int:
    """Return a slot's time in Unix seconds."""
    slot = params[0] if params else None
    if not is_u64(slot):
        raise RpcError(INVALID, "Invalid params: invalid type: expected u64.")
    if slot > view.slot:
        raise RpcError(-32004, f"Block not available for slot {slot}")
    return view.ledger.slots.time_of(slot)


def get_latest_blockhash(view: View, params: list[Any]) -> Any:
    """Return the latest blockhash, for a client that wants to send something."""
    slot = view.head(config_at(params, 0))
    value = {"blockhash": blockhash(slot), "lastValidBlockHeight": slot - BEHIND + 150}
    return contextual(slot, value)


def contextual(slot: int, value: Any) -> Any:
    """Return an answer with the slot that it is from."""
    return {"context": {"apiVersion": VERSION["solana-core"], "slot": slot}, "value": value}


def blockhash(slot: int) -> str:
    """Return the hash of a slot's block."""
    return base58(sha256(f"block {slot}".encode()).digest())
