"""Call data for contract accounts: a Safe's execTransaction, and a UserOperation for the entry point of ERC-4337."""

from dataclasses import dataclass
from hashlib import sha256

from eth_abi.abi import encode
from eth_abi.grammar import parse
from eth_hash.auto import keccak

SAFE, ACCOUNT = "Safe", "Account4337"
STANDARDS = (SAFE, ACCOUNT)
ENTRY_POINT = "0x0000000071727de22e5e9d8baf0edac6f37da032"
"""The address of version 0.7, the same on every chain."""
BUNDLER = "0x" + sha256(b"sandbox bundler").hexdigest()[:40]
"""The account that sends operations to the entry point. Nobody has a key for it; the node impersonates it."""
NOBODY = "0x" + "00" * 20
EXEC = "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)"
OPERATION = "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"
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


def calldata(form: str, *values: object) -> str:
    """Return the call data of a function with parameters; `form` is its signature without parameter names."""
    types = [one.to_type_str() for one in parse(form[form.index("(") :]).components]
    return "0x" + (keccak(form.encode())[:4] + encode(types, values)).hex()


def of_owner(owner: str) -> str:
    """Return the Safe signature of an owner who sends the transaction."""
    return owner[2:].rjust(64, "0") + "00" * 32 + "01"


def execution(account: str, owner: str, value: int, data: str) -> str:
    """Return what the owner sends to a Safe so that the Safe pays `value` to itself, with `data`."""
    signature = bytes.fromhex(of_owner(owner))
    raw = bytes.fromhex(data[2:])
    return calldata(EXEC, account, value, raw, CALL, 0, 0, 0, NOBODY, NOBODY, signature)


def operation(account: str, nonce: int, value: int, data: str) -> Operation:
    """Return the operation by which an account pays `value` to itself, with `data`. It is free: no gas price is set."""
    call = calldata("execute(address,uint256,bytes)", account, value, bytes.fromhex(data[2:]))
    limits = GAS.to_bytes(16, "big") + GAS.to_bytes(16, "big")
    return (account, nonce, b"", bytes.fromhex(call[2:]), limits, 0, bytes(32), b"", b"")


def hash_of(wanted: Operation) -> str:
    """Return the call to the entry point that answers with an operation's hash."""
    return calldata(f"getUserOpHash({OPERATION})", wanted)


def bundle(operations: list[Operation]) -> str:
    """Return what a bundler sends to the entry point."""
    return calldata(f"handleOps({OPERATION}[],address)", operations, BUNDLER)
