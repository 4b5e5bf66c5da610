"""Detect a reorganisation: blocks that the chain has replaced, and the transfers that disappeared with them."""

from collections.abc import Set
from dataclasses import dataclass

from gateways.evm.log_decoding import Transfer
from gateways.evm.transfer_logs import TransferLogs
from services.triggers.chain_cursor import Position

LOOKED_BACK = 64
"""Blocks to go back when the last settled block is no longer on the chain."""
KEPT = 1_024
"""Blocks whose transfers are remembered, to queue their owners if a reorganisation removes them."""
MOST_SEEN = 50_000
"""Maximum remembered transfers (some 500 bytes each); the oldest blocks are dropped first."""


async def is_on_chain(transfers: TransferLogs, chain: str, stored: Position, endpoint: int) -> bool:
    """Return whether the stored position is still on the chain, according to this endpoint."""
    if not stored.block_hash:
        return True
    return await transfers.block_hash(chain, stored.block, endpoint) == stored.block_hash


def read_back_from(stored: Position) -> Position:
    """Return the position from which to read again after the stored position has left the chain."""
    return Position(max(1, stored.block - LOOKED_BACK), "")


@dataclass(frozen=True, slots=True)
class BlockDoubts:
    """What a node says about blocks of which it omitted transfers that were seen before."""

    replaced: frozenset[int]
    """The blocks that have left the chain. A node that merely omitted a transfer still has its block."""
    lacking: frozenset[int]
    """The blocks that it does not have, although its head came later: another machine answered, which is behind."""


async def ask_about(transfers: TransferLogs, chain: str, doubtful: dict[int, str], endpoint: int) -> BlockDoubts:
    """Ask a node about these blocks (number → former hash)."""
    newest = sorted(doubtful, reverse=True)[:LOOKED_BACK]
    hashes = [await transfers.block_hash(chain, block, endpoint) for block in newest]
    differ = {block: said for block, said in zip(newest, hashes, strict=True) if said != doubtful[block]}
    lacking = frozenset(block for block, said in differ.items() if said is None)
    return BlockDoubts(frozenset(differ) - lacking, lacking)


class SeenTransfers:
    """The transfers of the newest blocks, as this process has read them."""

    def __init__(self) -> None:
        self._blocks: dict[int, set[Transfer]] = {}

    def doubtful(self, found: list[Transfer], first: int, last: int) -> dict[int, str]:
        """Return the blocks with a transfer that is now missing, with their former hashes."""
        there = set(found)
        return {
            block: next(iter(known)).block_hash
            for block, known in self._blocks.items()
            if first <= block <= last and known - there
        }

    def news(self, found: list[Transfer], replaced: Set[int], last: int) -> set[Transfer]:
        """Return the transfers that are new, and those of blocks replaced since."""
        news: set[Transfer] = set()
        for block in replaced:
            news |= self._blocks.pop(block, set())
        for one in found:
            known = self._blocks.setdefault(one.block, set())
            if one not in known:
                known.add(one)
                news.add(one)
        for block in [block for block in self._blocks if block < last - KEPT]:
            del self._blocks[block]
        left = sum(map(len, self._blocks.values()))
        for block in sorted(self._blocks):
            if left <= MOST_SEEN:
                break
            left -= len(self._blocks.pop(block))
        return news
