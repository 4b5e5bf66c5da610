"""Whether a node still has the logs of old blocks: some nodes prune them, and answer as if there had been none."""

from time import monotonic
from typing import cast

from eth_utils.crypto import keccak

from gateways.evm.rpc.errors import RpcRefused, StateMissing
from gateways.evm.rpc.node import Head, Node, binary, quantity
from gateways.transport.errors import ProviderError

SAMPLES = 8
"""Blocks whose headers are read, evenly spread over the chain's past."""
ENOUGH = 2
"""Of the oldest blocks, how many without their logs show a node to be pruned: a header may name an event wrongly."""
REMEMBERED = 600.0
"""Seconds for which a result counts; not long, since behind one address only some machines may be pruned."""
BLOOM_BYTES = 256
ROOT = "0x" + "0" * 64
"""The parent that the first block of a chain names."""


class OldLogs:
    """Compares the logs of old blocks, as one node gives them, with the same node's headers of these blocks."""

    def __init__(self, node: Node, topic: str) -> None:
        """Look for the event with this first topic, which has to be a frequent one."""
        self._node, self._topic = node, topic
        self._is_pruned = False
        self._until = 0.0
        """Until when (monotonic seconds) the last result counts."""

    async def check(self, head: Head) -> None:
        """Raise StateMissing if the node gives no logs of old blocks that have some. Raises ProviderError.

        The bloom filter in a header names every event of its block (docs/facts.md#logs-of-pruned-nodes). A node cannot
        be checked where headers have no such filter, or where it wants an address with each request for logs. A block
        that the node lacks counts as one with the event, unless the chain begins after it: a development chain may.
        """
        if monotonic() >= self._until:
            self._is_pruned = await self._lacks(head)
            self._until = monotonic() + REMEMBERED
        if self._is_pruned:
            raise StateMissing(self._node.name, "it does not have the logs of old blocks any more")

    async def _lacks(self, head: Head) -> bool:
        sampled = sorted({head.block * place // (SAMPLES + 1) for place in range(1, SAMPLES + 1)})
        headers = await self._node.batch([("eth_getBlockByNumber", (hex(block), False)) for block in sampled])
        missing, first = 0, await self._first_block() if None in headers else 0
        for block, header in zip(sampled, headers, strict=True):
            if isinstance(header, ProviderError):
                raise header
            if block < first if header is None else not self._names_event(header):
                continue
            if await self._has_logs(block, refused=header is not None):
                return False
            missing += 1
            if missing >= ENOUGH:
                return True
        return False

    async def _first_block(self) -> int:
        """Return the block with which the whole chain begins: one without a parent."""
        earliest = await self._node.call("eth_getBlockByNumber", ("earliest", False))
        header = cast("dict[str, object]", earliest) if isinstance(earliest, dict) else {}
        return quantity(self._node.name, header.get("number")) if header.get("parentHash") == ROOT else 0

    async def _has_logs(self, block: int, *, refused: bool) -> bool:
        """Return whether the node gives logs of the block, and `refused` if it refuses to say."""
        where = {"fromBlock": hex(block), "toBlock": hex(block), "topics": [self._topic]}
        try:
            return bool(await self._node.call("eth_getLogs", (where,)))
        except RpcRefused:
            return refused

    def _names_event(self, header: object) -> bool:
        said = cast("dict[str, object]", header).get("logsBloom") if isinstance(header, dict) else None
        bloom = binary(self._node.name, said) if isinstance(said, str) else b""
        # A filter with every bit says nothing: some chains fill it in without looking at their logs.
        says = len(bloom) == BLOOM_BYTES and any(byte != 0xFF for byte in bloom)
        return says and _is_in(bloom, bytes.fromhex(self._topic[2:]))


def _is_in(bloom: bytes, item: bytes) -> bool:
    """Return whether a header's bloom filter has an item: three bits, named by the first six bytes of its hash."""
    digest = keccak(item)
    bits = (int.from_bytes(digest[at : at + 2], "big") % (8 * BLOOM_BYTES) for at in (0, 2, 4))
    return all(bloom[BLOOM_BYTES - 1 - bit // 8] >> bit % 8 & 1 for bit in bits)
