"""View calls through Multicall3, for a node without state override: many wallets in one `eth_call`."""

from collections.abc import Sequence

from gateways.evm.balances import aggregate3
from gateways.evm.balances.aggregate3 import GET_BLOCK_NUMBER, GET_CHAIN_ID
from gateways.evm.balances.program_reads import NothingCame
from gateways.evm.calls.views_program import CopiedAnswer
from gateways.evm.rpc.errors import Reverted, TooMuch, Unsupported
from gateways.evm.rpc.node import Head, Node, binary, patiently
from gateways.evm.tokens.one_word_program import Silence

GAS_LEFT = 2_000_000
"""Gas that must be left after the last call. If it is, no earlier call lacked gas that another had used."""
BLAKE2F = bytes(19) + b"\x09"
BURN = GAS_LEFT.to_bytes(4, "big") + bytes(208) + b"\x01"
"""GAS_LEFT rounds of BLAKE2b, each of which costs one gas (docs/facts.md#contract-abi)."""
BURNT_BYTES = 64


async def ask(
    node: Node, head: Head, caller: str, multicall: str, contract: bytes, calls: Sequence[bytes]
) -> list[CopiedAnswer | Silence]:
    """Return the contract's answer to each of `calls` at the head's block.

    The calls begin with the chain's id and end with the block's number, which must be right. Raises TooMuch where the
    calls together need more gas than the node gives.
    """
    itself = bytes.fromhex(multicall[2:])
    asked = [(itself, GET_CHAIN_ID), *((contract, data) for data in calls), (BLAKE2F, BURN), (itself, GET_BLOCK_NUMBER)]
    call = {"from": caller, "to": multicall, "data": "0x" + aggregate3.pack(asked).hex()}
    try:
        said = binary(node.name, await patiently(node, "eth_call", (call, hex(head.block))))
    except Reverted as fault:
        raise TooMuch(node.name, str(fault), status=200) from None
    if not said:
        raise NothingCame(node.name, "nothing where an aggregate should be")
    chain, *results, burnt, block = aggregate3.read_bytes(node.name, said, len(asked))
    aggregate3.check(node, head, _number(chain), _number(block))
    if burnt is None:
        raise TooMuch(node.name, "the calls together want more gas than the node gives", status=200)
    if len(burnt) != BURNT_BYTES:
        raise Unsupported(node.name, "the chain has no BLAKE2b function", status=200)
    return [Silence.REVERTED if one is None else CopiedAnswer(one, len(one)) for one in results]


def _number(result: bytes | None) -> int | None:
    return int.from_bytes(result, "big") if result is not None and len(result) == 32 else None
