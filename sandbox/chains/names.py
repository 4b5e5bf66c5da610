"""Ethereum's names: where ENS's contracts are, and the calls that make a name resolve to an address."""

from eth_hash.auto import keccak

from sandbox.base.chain_table import KEEPER
from sandbox.base.people import person
from sandbox.chains import abi

REGISTRY = "0x00000000000c2e074ec69a0dfb2997ba6c7d2e1e"
RESOLVER = "0x231b0ee14048e9dccd1d247744d114a4eb5e8e63"
# The resolver of names that end in .eth and have none of their own; its answer shows every client that there is none.
OF_ETH = "0x30200e0cb040f38e474e53ef437c95a1be723b2b"
UNIVERSAL = "0xeeeeeeee14d718c2b47d9923deab1335e144eeee"
CONTRACTS = {REGISTRY: "NameRegistry", RESOLVER: "NameResolver", OF_ETH: "EthResolver", UNIVERSAL: "UniversalResolver"}
# Small, so that many of these calls fit into one block.
GAS = 400_000

Call = tuple[str, str]
"""Contract and call data; the keeper may send all of these."""


def namehash(name: str) -> str:
    """Return the registry's key of a name, as 64 hexadecimal digits."""
    node = bytes(32)
    for label in reversed(name.split(".")):
        node = keccak(node + keccak(label.encode()))
    return node.hex()


def stands_for(name: str, address: str) -> list[Call]:
    """Return the calls that make a name resolve to an address, which owns the name from then on."""
    data = abi.call("NameResolver", "setAddr(bytes32,address)", namehash(name), address)
    return [*_registered(name, address), (RESOLVER, data)]


def is_called(address: str, name: str) -> list[Call]:
    """Return the calls that give an address a primary name, whether or not the name resolves to it."""
    reverse = f"{address[2:].lower()}.addr.reverse"
    data = abi.call_with_text("NameResolver", "setName(bytes32,string)", namehash(reverse), name)
    return [*_registered(reverse, address), (RESOLVER, data)]


def seeds() -> list[Call]:
    """Return the calls for the names at the start: `carol.eth`."""
    carol = person("carol").wallets.evm.lower()
    return [*stands_for("carol.eth", carol), *is_called(carol, "carol.eth")]


def restored() -> list[Call]:
    """Return the calls that restore the names of the start."""
    return [(REGISTRY, abi.call("NameRegistry", "restart()")), *seeds()]


def _registered(name: str, owner: str) -> list[Call]:
    """Return the calls that register all labels of a name, from the right.

    The full name belongs to `owner`, the names above it to the keeper.
    """
    form = "setSubnodeRecord(bytes32,bytes32,address,address,uint64)"
    labels, calls, above = name.split("."), list[Call](), "00" * 32
    for place in range(len(labels) - 1, -1, -1):
        label = keccak(labels[place].encode()).hex()
        holder = KEEPER if place else owner
        resolver = OF_ETH if labels[place:] == ["eth"] else RESOLVER
        calls.append((REGISTRY, abi.call("NameRegistry", form, above, label, holder, resolver, 0)))
        above = namehash(".".join(labels[place:]))
    return calls
