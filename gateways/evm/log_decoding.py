"""Decode a node's logs: which are transfers of tokens or coins, or changes of delegations, and between whom."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec
import orjson

from gateways.evm import delegate_registry
from gateways.evm.tokens.event_topics import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE
from gateways.transport.errors import ProviderConfused

THIRD = (TRANSFER_SINGLE, TRANSFER_BATCH, CONSECUTIVE)
"""The events that have sender and receiver as their third and fourth topic."""
_UNINDEXED = re.compile("0x0{24}([0-9a-fA-F]{40})0{24}([0-9a-fA-F]{40})[0-9a-fA-F]{64}$")
"""The data of a transfer without indexed addresses, as CryptoKitties logs it: sender, receiver, and the token."""


class Transfer(NamedTuple):
    """A move of a contract's token, or of an amount of a coin, from one address to another, in a block with this hash.

    Where the contract is the registry of delegations, it is a change of what a vault (the sender) lets a delegate do.
    It is a tuple because thousands are made and compared at a time, which takes half as long as with a dataclass.
    """

    block: int
    block_hash: str
    contract: str
    sender: str
    receiver: str


class Log(msgspec.Struct, gc=False, rename="camel"):
    """The fields of a log that we read; the others, two thirds of it, are skipped without being decoded."""

    address: str
    topics: list[str]
    block_number: str
    block_hash: str
    data: str | None = None
    """Decoded where a contract that is older than ERC-721 writes the addresses there; empty in most logs."""


class _Logs(msgspec.Struct):
    """A good answer to eth_getLogs."""

    id: int
    result: list[Log]
    error: None = None


_LOGS = msgspec.json.Decoder(_Logs)


def decode_logs(content: bytes) -> object:
    """Return a good answer to eth_getLogs with a list of Log as its result; any other answer as orjson reads it.

    Raises orjson.JSONDecodeError for content that is not JSON. Fields that are not read are not checked closely: a
    number there may be too large, and a text may not be UTF-8.
    """
    try:
        answer = _LOGS.decode(content)
    except (ValueError, RecursionError):  # an error, a wrong shape or no JSON: the caller finds out which
        return cast("object", orjson.loads(content))
    return {"id": answer.id, "result": answer.result}


def read_logs(
    provider: str,
    answer: object,
    first: int,
    last: int,
    registry: str | None = None,
    skipped: Counter[str] | None = None,
    *,
    coins: bool = False,
) -> list[Transfer]:
    """Return the transfers in an answer to eth_getLogs; those without an id (of ERC-20 and Punks) only with `coins`.

    `answer` is the result that `decode_logs` gave, or plain JSON. Changes of delegations count only in logs of the
    `registry`. Logs that are neither are counted in `skipped` by their contract, since a contract may log anything.
    Raises ProviderConfused where the node is at fault: the answer is not a list of logs of these blocks.
    """
    if not isinstance(answer, list):
        raise ProviderConfused(provider, "the logs are not a list")
    odd = Counter[str]() if skipped is None else skipped
    try:
        logs = msgspec.convert(cast("list[object]", answer), list[Log])
        return _transfers(provider, logs, first, last, (registry or "").lower(), odd, least=3 if coins else 4)
    except (ValueError, IndexError) as fault:
        raise ProviderConfused(provider, "a log has a wrong shape") from fault


def _transfers(
    provider: str, logs: Sequence[Log], first: int, last: int, registry: str, skipped: Counter[str], least: int
) -> list[Transfer]:
    """Return the transfers with at least `least` topics. Raises ValueError for a log that no contract can write."""
    found: list[Transfer] = []
    # The loop runs thousands of times, so it looks up and calls as little as possible. A NamedTuple's own constructor
    # is a Python function, tuple's is not. Logs come block by block, so most have the number of the one before.
    add, make, changed, third = found.append, tuple[int | str, ...].__new__, delegate_registry.CHANGED, THIRD
    number, block = "", 0
    for log in logs:
        topics = log.topics
        if log.block_number != number or not number:
            number = log.block_number
            block = int(number, 16)
            if not first <= block <= last:
                raise ProviderConfused(provider, f"a log of block {block}, which was not asked for")
        event = topics[0] if topics else ""
        address = log.address.lower()
        if event == TRANSFER:
            if len(topics) == 1 and least == 3 and (both := _UNINDEXED.match(log.data or "")):
                add(Transfer(block, log.block_hash, address, *("0x" + one.lower() for one in both.groups())))
                continue
            if not least <= len(topics) <= 4:
                continue  # an ERC-20's
            at = 1
        elif event in third and len(topics) == 4:
            at = 2
        elif event in changed and address == registry and len(topics) >= 3:
            at = 1
        else:
            skipped[address] += 1
            continue
        sender, receiver = topics[at], topics[at + 1]
        if len(sender) != 66 or len(receiver) != 66:
            raise ValueError(topics)
        add(make(Transfer, (block, log.block_hash, address, "0x" + sender[26:].lower(), "0x" + receiver[26:].lower())))
    return found
