"""Cache of the chains and contracts in rules' expressions."""

import json
from collections import OrderedDict
from hashlib import blake2b
from typing import NamedTuple

from services.rules.expression import parse_stored, requirements


class NamedContract(NamedTuple):
    """A contract that a rule names, and whether the rule names it as a coin."""

    chain: str
    contract: str
    is_coin: bool = False


MOST_BYTES = 32 * 2**20
"""Approximate memory limit of the cache in one process."""
_ENTRY_BYTES = 400
_PLACE_BYTES = 200


class PlacesByExpression:
    """Cached answers by the text of an expression; beyond `most_bytes` the least recently used are dropped."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        # By digest: a text can have tens of thousands of token ids, which are not needed here.
        self._known: OrderedDict[bytes, frozenset[NamedContract]] = OrderedDict()
        self.bytes: int = 0

    def of(self, expression: str) -> frozenset[NamedContract]:
        """Return the chains and contracts in an expression, given as JSON text."""
        key = blake2b(expression.encode(), digest_size=20).digest()
        if (found := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            return found
        leaves = requirements(parse_stored(json.loads(expression)))
        found = frozenset(
            NamedContract(leaf.chain, leaf.contract, leaf.kind.source == "coins")
            for leaf in leaves
            # Transfers do not show what a contract's function answers.
            if leaf.kind.on_chain and leaf.kind.source != "calls"
        )
        self._known[key] = found
        self.bytes += _weight(found)
        while self.bytes > self._most_bytes and len(self._known) > 1:
            self.bytes -= _weight(self._known.popitem(last=False)[1])
        return found


def _weight(places: frozenset[NamedContract]) -> int:
    return _ENTRY_BYTES + _PLACE_BYTES * len(places)
