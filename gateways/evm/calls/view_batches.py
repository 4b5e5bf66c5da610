"""View calls through a node without state override: one `eth_call` for each wallet, in JSON-RPC batches."""

import hashlib
import secrets
from collections.abc import Sequence

from gateways.evm.calls.views_program import CopiedAnswer
from gateways.evm.rpc.node import Head, Node, binary
from gateways.evm.rpc.special_addresses import SHA256
from gateways.evm.tokens.one_word_calls import CALL_ITSELF, MORE_GAS, silence_in
from gateways.evm.tokens.one_word_program import Silence
from gateways.transport.errors import ProviderConfused, ProviderError


async def ask(
    node: Node, head: Head, caller: str, contract: bytes, calls: Sequence[bytes]
) -> list[CopiedAnswer | Silence]:
    """Return the contract's answer to each of `calls` at the head's block.

    The batch begins with a question whose answer is known. Raises ProviderConfused for a node that answers it wrongly,
    because it does not run calls or answers zeros to all of them. Each call may use much gas from the start, since a
    call that is cut short here does not say so.
    """
    nonce, block, gas = secrets.token_bytes(32), hex(head.block), hex(MORE_GAS + CALL_ITSELF)
    asked = [(SHA256, nonce), *(("0x" + contract.hex(), data) for data in calls)]
    canary, *results = await node.batch(
        [("eth_call", ({"from": caller, "to": to, "data": "0x" + data.hex(), "gas": gas}, block)) for to, data in asked]
    )
    if isinstance(canary, ProviderError):
        raise canary
    if binary(node.name, canary) != hashlib.sha256(nonce).digest():
        raise ProviderConfused(node.name, "it does not answer what is known")
    return [_heard(node.name, result) for result in results]


def _heard(provider: str, result: object) -> CopiedAnswer | Silence:
    if (silence := silence_in(result)) is not None:
        return silence
    said = binary(provider, result)
    return CopiedAnswer(said, len(said))
