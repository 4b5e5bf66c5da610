"""Many calls in one `eth_call` by Multicall3's aggregate3 (docs/facts.md#multicall3): call data and answer."""

from collections.abc import Sequence
from functools import lru_cache

from gateways.chains.balance_sheet import MOST
from gateways.evm.rpc.node import Head, Node
from gateways.transport.errors import ProviderConfused

AGGREGATE3 = bytes.fromhex("82ad56cb")
GET_CHAIN_ID = bytes.fromhex("3408e470")
"""Multicall3's own getChainId(). It is the first call and GET_BLOCK_NUMBER the last; `check` takes both answers."""
GET_BLOCK_NUMBER = bytes.fromhex("42cbb15c")
ONE = (1).to_bytes(32, "big")
A_NUMBER = ONE + (64).to_bytes(32, "big") + (32).to_bytes(32, "big")
"""The first three words of a result that is one number, as compilers lay it out: success, offset and length."""


def pack(calls: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the call data of aggregate3((address target, bool allowFailure, bytes callData)[]), failures allowed."""
    offsets, bodies, place = list[bytes](), list[bytes](), 32 * len(calls)
    for target, data in calls:
        body = _before(target, len(data)) + data + bytes(-len(data) % 32)
        offsets.append(_uint(place))
        bodies.append(body)
        place += len(body)
    return b"".join((AGGREGATE3, _uint(32), _uint(len(calls)), *offsets, *bodies))


@lru_cache(maxsize=8)
def _before(target: bytes, size: int) -> bytes:
    """Return the words before a call's own data; cached, because thousands of calls in a row share them."""
    return b"".join((bytes(12), target, ONE, _uint(96), _uint(size)))


def _uint(value: int) -> bytes:
    return value.to_bytes(32, "big")


def check(node: Node, head: Head, chain: int | None, block: int | None) -> None:
    """Raise ProviderConfused unless the chain's id and the block's number are right."""
    if chain != node.chain.chain_id or not block:
        raise ProviderConfused(node.name, "the aggregate lacks its mark")
    if block != head.block and not node.chain.l1_block_number:
        raise ProviderConfused(node.name, "the aggregate is of another block")


def read_numbers(provider: str, answer: bytes, count: int) -> list[int | None]:
    """Return the results (bool success, bytes returnData)[] as numbers; None for a failed call or another size.

    A number has 32 bytes. Raises ProviderConfused when the answer is not such a list of `count` results.
    """
    results: list[int | None] = []
    for at in _places(provider, answer, count):
        if answer[at : at + 96] != A_NUMBER:
            data = at + _number(provider, answer, at + 32)
            if _number(provider, answer, at) != 1 or _number(provider, answer, data) != 32:
                results.append(None)
                continue
            at = data - 64
        results.append(min(_number(provider, answer, at + 96), MOST))
    return results


def read_bytes(provider: str, answer: bytes, count: int) -> list[bytes | None]:
    """Return the returnData of the results (bool success, bytes returnData)[]; None where a call failed.

    Raises ProviderConfused when the answer is not such a list of `count` results, each with bytes of its own: where
    they share them, the results could have a thousand times as many bytes as the answer.
    """
    results: list[bytes | None] = []
    left = len(answer)
    for at in _places(provider, answer, count):
        success, data = _number(provider, answer, at), at + _number(provider, answer, at + 32)
        size = _number(provider, answer, data)
        if success > 1 or data + 32 + size > len(answer):
            raise ProviderConfused(provider, "the aggregate ends too early")
        left -= 32 + size
        if left < 0:
            raise ProviderConfused(provider, "the aggregate's results share their bytes")
        results.append(answer[data + 32 : data + 32 + size] if success else None)
    return results


def _places(provider: str, answer: bytes, count: int) -> list[int]:
    """Return where in the answer each result begins."""
    base = _number(provider, answer, 0) + 32
    if _number(provider, answer, base - 32) != count:
        raise ProviderConfused(provider, "the aggregate has another number of results")
    if base + 32 * count > len(answer):
        raise ProviderConfused(provider, "the aggregate ends too early")
    places = range(base, base + 32 * count, 32)
    return [base + int.from_bytes(answer[place : place + 32], "big") for place in places]


def _number(provider: str, answer: bytes, at: int) -> int:
    if at < 0 or at + 32 > len(answer):
        raise ProviderConfused(provider, "the aggregate ends too early")
    return int.from_bytes(answer[at : at + 32], "big")
