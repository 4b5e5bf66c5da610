"""Which tokens of a contract each owner held at one block, what could not be learned, and hints for the next read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from locales import N_

MOST_IDS_KEPT = 2_000
"""The most ids that a trail keeps for one owner and contract: anybody can send an owner any number of tokens."""
LARGEST_ID = 2**256 - 1


@dataclass(frozen=True, slots=True)
class TokenHints:
    """Tokens that an owner is known to have received: hints to verify on the chain, never proof.

    `searched` maps a node's mark (`Node.mark`) to the blocks (first and last, both included) that were searched for
    more ids at that node; what one node did not show says nothing about another. `gone` are ids of the trail that the
    owner no longer has according to the chain, each with the block at which it first said so. `dropped` are ids that
    were taken out of the trail because their loss is settled.
    """

    ids: frozenset[str] = frozenset()
    searched: Mapping[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    gone: Mapping[str, int] = field(default_factory=dict[str, int])
    dropped: frozenset[str] = frozenset()

    @property
    def full(self) -> bool:
        """Whether there may be more tokens than a trail keeps."""
        return len(self.ids) >= MOST_IDS_KEPT

    def with_ids(self, ids: Iterable[str]) -> "TokenHints":
        """Return the trail with these ids added, as far as it has room."""
        # Two reads at the same moment may have stored more together.
        room = max(0, MOST_IDS_KEPT - len(self.ids))
        fresh = [one for one in ids if one not in self.ids][:room]
        return replace(self, ids=self.ids | frozenset(fresh)) if fresh else self

    def without(self, gone: frozenset[str]) -> "TokenHints":
        """Return the trail without these ids, whose loss is settled.

        A full trail has left ids out. Once it has room, all blocks count as not searched, so that these are found.
        """
        searched = dict[int, tuple[int, int]]() if gone and self.full else self.searched
        waiting = {one: first for one, first in self.gone.items() if one not in gone}
        return TokenHints(self.ids - gone, searched, waiting, gone)

    def looked_at(self, held: Iterable[str], gone: Iterable[str], block: int, settled_after: int) -> "TokenHints":
        """Return the trail after a read at `block`: with the ids in `held`, without those in `gone` that are settled.

        An id in `gone` leaves if it was first gone at least `settled_after` blocks ago; an id in neither stays.
        """
        here = frozenset(held)
        since = {one: self.gone.get(one, block) for one in gone if one in self.ids and one not in here}
        dropped = frozenset(one for one, first in since.items() if block - first >= settled_after)
        return replace(self, gone=since).without(dropped).with_ids(sorted(here))


Trails = Mapping[str, TokenHints]
"""The hints of an earlier sheet, by owner."""
NO_TRAILS: Trails = MappingProxyType({})
_NONE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TokenSheet:
    """The tokens of one contract that each of the given owners held, all at one block of one node.

    `held` maps an owner to the ids and amounts (above 0) of its tokens. `unsure` maps an owner to the reason why not
    everything could be learned: its tokens in `held` are certain all the same, and any others are unknown. `alone` maps
    an owner without tokens to the index that is alone in saying so. For `Chains.anything` the contract is "any" and an
    id reads "contract:id". `trails` are the trails after this read, for the next one.
    """

    chain: str
    contract: str
    block: int
    block_time: datetime
    endpoint: int
    source: str
    held: Mapping[str, Mapping[str, int]]
    unsure: Mapping[str, str]
    trails: Trails = field(default_factory=dict[str, TokenHints])
    alone: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, owner: str) -> Mapping[str, int]:
        """Return the owner's tokens that are known: id → amount."""
        return self.held.get(owner, _NONE)


IN_TURN = N_("its turn comes in one of the next reads")
"""The start of the reason for an owner who did not fit into the read; a read of fewer owners would have room."""


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Token ids as inclusive ranges, which are never expanded; a single id is a range of one."""

    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, token_id: object) -> bool:
        return isinstance(token_id, int) and any(first <= token_id <= last for first, last in self.ranges)

    def __iter__(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)

    @property
    def count(self) -> int:
        """The number of ids."""
        return sum(last - first + 1 for first, last in self.ranges)


def token_ids(entries: Iterable[str]) -> TokenIds:
    """Return the ids and ranges ("7", "100-200") that a rule names, in order and without overlap.

    `services/rules/types/token_ids.py` checks what people write. Raises ValueError for any other text.
    """
    parts = (entry.partition("-") for entry in entries)
    merged = list[tuple[int, int]]()
    for first, last in sorted((int(first), int(last or first)) for first, _, last in parts):
        if last < first:
            raise ValueError(f"the range {first}-{last} runs backwards")
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return TokenIds(tuple(merged))
