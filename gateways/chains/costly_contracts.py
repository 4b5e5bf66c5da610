"""Contracts that use far more of a node than others do, remembered between reads so that other reads do not suffer."""

from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic

USELESS = 8
"""Useless answers after which a contract that uses up all its gas is not asked for a while."""
FIRST_REST, LONGEST_REST, GROWTH = 30.0, 3_600.0, 4
"""Seconds for which a useless contract is not asked: the first time, at most, and the factor in between."""
REMEMBERED = 6 * 3_600.0
"""Seconds after which a contract counts as ordinary again, unless it proves costly once more."""
MOST_REMEMBERED = 10_000


@dataclass(slots=True)
class _Known:
    useless: int = 0
    """Useless answers since its last pause began."""
    rests: int = 0
    """How many pauses it has had since its last useful answer."""
    asked_again: float = 0.0
    """When it may be asked again, in monotonic seconds."""
    until: float = 0.0


class CostlyContracts:
    """The costly contracts that reads from one node have found, by their addresses of 20 bytes."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    def addresses(self) -> list[bytes]:
        """Return the addresses of the contracts that are known to be costly."""
        now = monotonic()
        return [contract for contract, known in self._known.items() if now < known.until]

    def rests(self, contract: bytes) -> bool:
        """Return whether the contract must not be asked yet, because its answers were useless too often."""
        known = self._known.get(contract)
        return known is not None and monotonic() < known.asked_again

    def note(self, contract: bytes, useless: int = 0) -> None:
        """Record that a contract took far more than its share of a node, and how many of its answers were useless."""
        now, known = monotonic(), self._known.pop(contract, None)
        if known is None or now >= known.until:
            known = _Known()
        known.useless += useless
        known.until = now + REMEMBERED
        if known.useless >= USELESS:
            rest = min(LONGEST_REST, FIRST_REST * GROWTH ** min(known.rests, 9))
            known.useless, known.rests = 0, known.rests + 1
            known.asked_again, known.until = now + rest, now + rest + REMEMBERED
        self._known[contract] = known
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)

    def answered(self, contract: bytes) -> None:
        """Record a useful answer of a contract: its next pause is as short as the first one."""
        if (known := self._known.get(contract)) is not None:
            known.useless = known.rests = 0
