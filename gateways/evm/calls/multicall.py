"""View calls through Multicall3, where a node knows no state override: many wallets in one `eth_call`."""

from collections.abc import Sequence

from gateways.evm.balances.bulk import NothingCame
from gateways.evm.balances.fallbacks import GET_BLOCK_NUMBER, GET_CHAIN_ID, pack_aggregate3
from gateways.evm.calls.program import CopiedAnswer
from gateways.evm.rpc.errors import Reverted, TooMuch, Unsupported
from gateways.evm.rpc.node import Head, Node, binary, patiently
from gateways.evm.tokens.program import Silence
from gateways.transport.errors import ProviderConfused

GAS_LEFT = 2_000_000
"""Gas that must be left after the last call: none before it was cut short for want of gas that others used."""
BLAKE2F = bytes(19) + b"\x09"
BURN = GAS_LEFT.to_bytes(4, "big") + bytes(208) + b"\x01"
"""So many rounds, each of which costs one gas (docs/facts.md#contract-abi)."""
BURNT_BYTES = 64


async def ask(
    node: Node, head: Head, caller: str, multicall: str, contract: bytes, calls: Sequence[bytes]
) -> list[CopiedAnswer | Silence]:
    """What the contract answers to each call data at the head's block; TooMuch where the calls together want less gas.

    The chain's id and the block's number lead and end the calls, and must be right.
    """
    itself = bytes.fromhex(multicall[2:])
    asked = [(itself, GET_CHAIN_ID), *((contract, data) for data in calls), (BLAKE2F, BURN), (itself, GET_BLOCK_NUMBER)]
    call = {"from": caller, "to": multicall, "data": "0x" + pack_aggregate3(asked).hex()}
    try:
        said = binary(node.name, await patiently(node, "eth_call", (call, hex(head.block))))
    except Reverted as fault:
        raise TooMuch(node.name, str(fault), status=200) from None
    if not said:
        raise NothingCame(node.name, "nothing where an aggregate should be")
    chain, *results, burnt, block = read_results(node.name, said, len(asked))
    if _number(chain) != node.chain.chain_id or not (number := _number(block)):
        raise ProviderConfused(node.name, "the aggregate lacks its mark")
    if number != head.block and not node.chain.l1_block_number:
        raise ProviderConfused(node.name, "the aggregate is of another block")
    if burnt is None:
        raise TooMuch(node.name, "the calls together want more gas than the node gives", status=200)
    if len(burnt) != BURNT_BYTES:
        raise Unsupported(node.name, "the chain has no BLAKE2b function", status=200)
    return [Silence.REVERTED if one is None else CopiedAnswer(one, len(one)) for one in results]


def _number(result: bytes | None) -> int:
    return int.from_bytes(result, "big") if result is not None and len(result) == 32 else 0


def read_results(provider: str, answer: bytes, count: int) -> list[bytes | None]:
    """The results (bool success, bytes returnData)[]: what came back, None where a call failed.

    ProviderConfused when the answer is not such a list of `count` results.
    """

    def number(at: int) -> int:
        if at < 0 or at + 32 > len(answer):
            raise ProviderConfused(provider, "the aggregate ends too early")
        return int.from_bytes(answer[at : at + 32], "big")

    base = number(0) + 32
    if number(base - 32) != count:
        raise ProviderConfused(provider, "the aggregate has another number of results")
    found: list[bytes | None] = []
    for place in range(base, base + 32 * count, 32):
        at = base + number(place)
        success, data = number(at), at + number(at + 32)
        size = number(data)
        if success > 1 or data + 32 + size > len(answer):
            raise ProviderConfused(provider, "the aggregate ends too early")
        found.append(answer[data + 32 : data + 32 + size] if success else None)
    return found
