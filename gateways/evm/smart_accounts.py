"""What a contract account did in somebody's transaction: a Safe's execution, or UserOperations of ERC-4337.

The transaction's input and its receipt are enough, so no node has to trace anything. A transaction calls a Safe
directly, or an entry point with a bundle of operations. Both report in events whether the call inside succeeded
(docs/facts.md#contract-accounts). A call that is not certain this way gets a doubt and proves nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_utils.crypto import keccak

from gateways.evm.rpc import special_addresses

SAFE_DONE = "0x442e715f626346e8c54381002da614f62bee8d27386535b2521ec8540898556e"
SAFE_FAILED = "0x23428b18acfb3ea64b08dc0c1d296ea9c09702c09083ca5272e64d115b687d23"
OPERATION_DONE = "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f"

_EXECUTION = ("address", "uint256", "bytes", "uint8", *["uint256"] * 3, "address", "address", "bytes")
_UNPACKED = "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)"
_PACKED = "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"
ENTRY_POINTS: Mapping[str, str] = {
    "0x5ff137d4b0fdcd49dca30c7cf57e578a026d2789": _UNPACKED,
    "0x0000000071727de22e5e9d8baf0edac6f37da032": _PACKED,
    "0x4337084d9e255ff0702461cf8895ce9e3b5ff108": _PACKED,
    "0x433709009b8330fda32311df1c2afa402ed8d009": _PACKED,
}
"""The address of each version of the entry point, on every chain, and its form of an operation. Others are ignored."""
MOST_OPERATIONS = 20
"""The most operations of one account that are read in a bundle."""
LONGEST_CALL = 16_384
"""The most bytes of call data that are read: lists in it may overlap, which then costs the square of its size."""
_CALL, _SIGNATURE = 0, -1
_NO_SIGNATURE = b"\x11" * 64 + b"\x1b"


class Doubt(Enum):
    """Why a call proves nothing."""

    RELAYED = "relayed"
    """Another contract passed it on, so the call itself is not in the transaction's input."""
    UNREADABLE = "unreadable"
    DELEGATED = "delegated"
    """The account ran another contract's code as its own."""
    UNSAID = "unsaid"
    """No event of the account reports this call."""
    FAILED = "failed"
    OPEN = "open"
    """The account accepts calls that nobody has signed."""


Forgery = tuple[str, str, str]
"""A call (sender, receiver, data) that nobody has signed, so an account that has an owner refuses it."""


@dataclass(frozen=True, slots=True)
class ReceiptLog:
    """An event in a transaction's receipt; address and topics in lower case."""

    address: str
    topics: tuple[str, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class AccountCall:
    """A call that a contract account made, or a doubt: why it proves nothing."""

    to: str = ""
    value: int = 0
    data: bytes = b""
    doubt: Doubt | None = None
    forgery: Forgery | None = None


def calls_of(to: str | None, data: bytes, logs: Sequence[ReceiptLog] | None, account: str) -> tuple[AccountCall, ...]:
    """Return the account's calls in a transaction to `to` with this input; empty if it did not act.

    Without `logs` the calls are not compared with events: the transaction waits to be mined, or its receipt is not
    read.
    """
    if to == account and data.startswith(_EXECUTE_SAFE):
        return (_of_safe(account, data, logs),)
    if to is not None and to in ENTRY_POINTS and data.startswith(_BUNDLES[to]):
        found = tuple(_of_bundle(to, data, logs, account))
        if found:
            return found
    if logs is not None and any(_is_about(log, account) for log in logs):
        return (AccountCall(doubt=Doubt.RELAYED),)
    return ()


def took_a_forgery(forgery: Forgery, said: bytes) -> bool:
    """Return whether the answer to a forgery, which did not revert, means that the account accepts it."""
    if forgery[0] not in ENTRY_POINTS:
        return True
    # An operation's validity: the last 20 bytes are 0 for yes, 1 for no, or the address of the contract that decides.
    return len(said) >= 32 and not any(said[12:32])


def _is_about(log: ReceiptLog, account: str) -> bool:
    if log.address == account:
        return log.topics[:1] in {(SAFE_DONE,), (SAFE_FAILED,)}
    return log.address in ENTRY_POINTS and log.topics[:1] == (OPERATION_DONE,) and _actor(log) == account


def _actor(log: ReceiptLog) -> str:
    return "0x" + log.topics[2][-40:] if len(log.topics) > 2 else ""


def _selector(name: str, *types: str) -> bytes:
    return keccak(text=f"{name}({','.join(types)})")[:4]


def _read(types: Sequence[str], data: bytes) -> tuple[Any, ...] | None:
    """Return the parameters in a call's data; None where they are of other types. Reads no more than the data holds."""
    with suppress(DecodingError, OverflowError, UnicodeDecodeError):
        return decode(types, data[4:])
    return None


_EXECUTE_SAFE = _selector("execTransaction", *_EXECUTION)
_BUNDLES = {place: _selector("handleOps", f"{form}[]", "address") for place, form in ENTRY_POINTS.items()}


def _of_safe(account: str, data: bytes, logs: Sequence[ReceiptLog] | None) -> AccountCall:
    said = _read(_EXECUTION, data)
    if said is None:
        return AccountCall(doubt=Doubt.UNREADABLE)
    to, value, inner, operation = said[:4]
    if operation != _CALL:
        return AccountCall(doubt=Doubt.DELEGATED)
    forged = _EXECUTE_SAFE + encode(_EXECUTION, [*said[:-1], _NO_SIGNATURE])
    doubt = None
    if logs is not None:
        told = [log.topics[0] for log in logs if log.address == account and log.topics]
        doubt = Doubt.FAILED if SAFE_FAILED in told else None if told.count(SAFE_DONE) == 1 else Doubt.UNSAID
    return AccountCall(to.lower(), value, inner, doubt, (special_addresses.UNUSED, account, "0x" + forged.hex()))


def _of_bundle(entry_point: str, data: bytes, logs: Sequence[ReceiptLog] | None, account: str) -> Iterator[AccountCall]:
    """Yield the calls that the account's operations in a bundle made."""
    form = ENTRY_POINTS[entry_point]
    for raw in islice(_operations(data[4:], account), MOST_OPERATIONS):
        said = _read((form,), b"\0" * 4 + (32).to_bytes(32, "big") + raw)
        if said is None:
            yield AccountCall(doubt=Doubt.UNREADABLE)
            continue
        operation = said[0]
        doubt = _outcome(operation[1], entry_point, logs, account) if logs is not None else None
        called = _called(operation[3])
        if called is None:
            yield AccountCall(doubt=doubt or Doubt.UNREADABLE)
            continue
        # Not the operation's hash, and no valid signature: only an account that accepts everything accepts this.
        forged = [*operation[:_SIGNATURE], _NO_SIGNATURE]
        asked = _selector("validateUserOp", form, "bytes32", "uint256")
        asked += encode([form, "bytes32", "uint256"], [forged, keccak(operation[_SIGNATURE] + b"forged"), 0])
        for to, value, inner in called:
            yield AccountCall(to, value, inner, doubt, (entry_point, account, "0x" + asked.hex()))


def _operations(packed: bytes, account: str) -> Iterator[bytes]:
    """Yield a bundle's input from the start of each of the account's operations. Overlapping offsets cost nothing."""
    start = _number(packed, 0)
    for place in range(min(_number(packed, start), len(packed) // 32)):
        begins = start + 32 + _number(packed, start + 32 + 32 * place)
        if packed[begins + 12 : begins + 32].hex() == account[2:]:
            yield packed[begins:]


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 32], "big")


def _outcome(nonce: int, entry_point: str, logs: Sequence[ReceiptLog], account: str) -> Doubt | None:
    """Return why an operation proves nothing, by the entry point's event with its nonce, which an account uses once."""
    events = (log for log in logs if log.address == entry_point and _is_about(log, account))
    said = next((log.data for log in events if _number(log.data, 0) == nonce), None)
    if said is None:
        return Doubt.UNSAID
    return None if _number(said, 32) == 1 else Doubt.FAILED


_Calls = list[tuple[str, int, bytes]]


def _one(said: tuple[Any, ...]) -> _Calls | None:
    to, value, inner, *operation = said
    return [(to.lower(), value, inner)] if operation in ([], [_CALL]) else None


def _several(said: tuple[Any, ...]) -> _Calls | None:
    places, values, inner = said
    if not len(places) == len(values) == len(inner):
        return None
    return [(to.lower(), value, data) for to, value, data in zip(places, values, inner, strict=True)]


def _listed(said: tuple[Any, ...]) -> _Calls | None:
    return [(to.lower(), value, data) for to, value, data in said[0]]


def _modular(said: tuple[Any, ...]) -> _Calls | None:
    """Return the calls in the form of ERC-7579; None for a mode that lets single calls fail."""
    mode, packed = said
    if mode[1]:
        return None
    if mode[0] == 0 and len(packed) >= 52:
        return [("0x" + packed[:20].hex(), int.from_bytes(packed[20:52], "big"), packed[52:])]
    listed = _read(("(address,uint256,bytes)[]",), b"\0" * 4 + packed) if mode[0] == 1 else None
    return _listed(listed) if listed is not None else None


_WITH_OPERATION = ("address", "uint256", "bytes", "uint8")
_FORMS: Sequence[tuple[str, tuple[str, ...], Callable[[tuple[Any, ...]], _Calls | None]]] = (
    ("execute", _WITH_OPERATION[:3], _one),
    ("execute", _WITH_OPERATION, _one),
    ("executeUserOp", _WITH_OPERATION, _one),
    ("executeUserOpWithErrorString", _WITH_OPERATION, _one),
    ("executeBatch", ("address[]", "uint256[]", "bytes[]"), _several),
    ("executeBatch", ("(address,uint256,bytes)[]",), _listed),
    ("execute", ("bytes32", "bytes"), _modular),
)
_READERS = {_selector(name, *types): (types, read) for name, types, read in _FORMS}
"""How accounts execute calls: SimpleAccount, Light Account, Coinbase's, Kernel's, a Safe's module, ERC-7579's."""


def _called(data: bytes) -> _Calls | None:
    """Return the calls that an operation's call data has the account make; None where they are not certain."""
    if len(data) > LONGEST_CALL:
        return None
    types, read = _READERS.get(data[:4], ((), None))
    said = _read(types, data) if read is not None else None
    return read(said) if read is not None and said is not None else None
