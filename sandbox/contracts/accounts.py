"""Call data for contract accounts: a Safe's execTransaction, and a UserOperation for the entry point of ERC-4337.

It is encoded here: eth_abi would take a seventh of the time in which the sandbox starts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from eth_hash.auto import keccak

Kind = str | tuple["Kind", ...] | list["Kind"]
"""The type of a parameter: `address`, `uint…`, `bytes` or `bytes32`; a tuple with `bytes` in it; a list of one kind."""

SAFE, ACCOUNT = "Safe", "Account4337"
STANDARDS = (SAFE, ACCOUNT)
ENTRY_POINT = "0x0000000071727de22e5e9d8baf0edac6f37da032"
"""The address of version 0.7, the same on every chain."""
BUNDLER = "0x" + sha256(b"sandbox bundler").hexdigest()[:40]
"""The account that sends operations to the entry point. Nobody has a key for it; the node impersonates it."""
NOBODY = "0x" + "00" * 20
EXEC: tuple[Kind, ...] = (
    "address", "uint256", "bytes", "uint8", "uint256", "uint256", "uint256", "address", "address", "bytes",
)  # fmt: skip
OPERATION: Kind = ("address", "uint256", "bytes", "bytes", "bytes32", "uint256", "bytes32", "bytes", "bytes")
GAS = 1_000_000
CALL = 0

Operation = tuple[str, int, bytes, bytes, bytes, int, bytes, bytes, bytes]
"""A PackedUserOperation, field by field."""


@dataclass(frozen=True)
class SmartAccount:
    """A contract account that the world lists."""

    account: str
    standard: str
    owner: str
    seeded: bool = False

    def view(self) -> dict[str, str]:
        """Return the account as in GET /control/world."""
        return {"account": self.account, "standard": self.standard, "owner": self.owner}


def calldata(name: str, kinds: tuple[Kind, ...], *values: object) -> str:
    """Return the call data of a function with parameters of these kinds."""
    return "0x" + keccak(f"{name}{_written(kinds)}".encode())[:4].hex() + _encoded(kinds, values)


def _written(kind: Kind) -> str:
    """Return a kind as it is written in a signature."""
    if isinstance(kind, str):
        return kind
    return f"{_written(kind[0])}[]" if isinstance(kind, list) else f"({','.join(map(_written, kind))})"


def _encoded(kinds: Sequence[Kind], values: Sequence[Any]) -> str:
    """Return values in hexadecimal: a word for each, followed by what has no fixed length, to which its word points."""
    heads, tails = list[str](), ""
    for kind, value in zip(kinds, values, strict=True):
        if isinstance(kind, str) and kind != "bytes":
            heads.append(_word(kind, value))
        else:
            heads.append(f"{32 * len(kinds) + len(tails) // 2:064x}")
            tails += _tail(kind, value)
    return "".join(heads) + tails


def _word(kind: str, value: Any) -> str:
    if kind == "bytes32":
        return value.hex().ljust(64, "0")
    return value.removeprefix("0x").lower().rjust(64, "0") if kind == "address" else f"{value:064x}"


def _tail(kind: Kind, value: Any) -> str:
    if isinstance(kind, tuple):
        return _encoded(kind, value)
    if isinstance(kind, list):
        return f"{len(value):064x}" + _encoded(kind * len(value), value)
    return f"{len(value):064x}" + value.hex().ljust(-(-len(value) // 32) * 64, "0")


def of_owner(owner: str) -> str:
    """Return the Safe signature of an owner who sends the transaction."""
    return owner[2:].rjust(64, "0") + "00" * 32 + "01"


def execution(account: str, owner: str, value: int, data: str) -> str:
    """Return what the owner sends to a Safe so that the Safe pays `value` to itself, with `data`."""
    signature = bytes.fromhex(of_owner(owner))
    raw = bytes.fromhex(data[2:])
    return calldata("execTransaction", EXEC, account, value, raw, CALL, 0, 0, 0, NOBODY, NOBODY, signature)


def operation(account: str, nonce: int, value: int, data: str) -> Operation:
    """Return the operation by which an account pays `value` to itself, with `data`. It is free: no gas price is set."""
    call = calldata("execute", ("address", "uint256", "bytes"), account, value, bytes.fromhex(data[2:]))
    limits = GAS.to_bytes(16, "big") + GAS.to_bytes(16, "big")
    return (account, nonce, b"", bytes.fromhex(call[2:]), limits, 0, bytes(32), b"", b"")


def hash_of(wanted: Operation) -> str:
    """Return the call to the entry point that answers with an operation's hash."""
    return calldata("getUserOpHash", (OPERATION,), wanted)


def bundle(operations: list[Operation]) -> str:
    """Return what a bundler sends to the entry point."""
    return calldata("handleOps", ([OPERATION], "address"), operations, BUNDLER)
