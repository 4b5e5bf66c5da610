"""The owners of tokens on a chain, read from the Transfer logs of its collections."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sandbox.chains.abi import NOBODY, Move, address_in, list_at, words

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
TRANSFER_SINGLE = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62"
TRANSFER_BATCH = "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb"
# Events of Punks: a first owner, a gift and a sale. Their Transfer does not name the punk.
ASSIGN = "0x8a0e37b73a0d9c82e205d4d1a3ff3d0b57ce5f4d7bccf6bac03336dc101cb7ba"
PUNK_TRANSFER = "0x05af636b70da6819000c49f85b21fa82081c632069bb626f30932034099107d8"
PUNK_BOUGHT = "0x58e5d5a525e3b40bc15abaa38b5882678db1ee68befd2f60bafe3a7fd06db9e3"
TOPICS = [TRANSFER, TRANSFER_SINGLE, TRANSFER_BATCH, ASSIGN, PUNK_TRANSFER, PUNK_BOUGHT]

Owners = dict[int, dict[str, int]]
"""token id → lower-case address → amount, without zeros"""


class Ownership:
    """The owners of tokens after the logs read so far, and the block up to which those reach."""

    def __init__(self) -> None:
        self.block = -1
        self._balances: dict[str, dict[int, dict[str, int]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(int))
        )
        self._owners: dict[str, Owners] = {}

    def read(self, logs: Iterable[dict[str, Any]], block: int) -> None:
        """Apply the logs of the blocks after `self.block` up to `block`, in the chain's order."""
        touched: set[str] = set()
        for log in logs:
            contract = log["address"].lower()
            touched.add(contract)
            tokens = self._balances[contract]
            for sender, to, token, amount in _moves(log):
                if sender != NOBODY:
                    tokens[token][sender] -= amount
                if to != NOBODY:
                    tokens[token][to] += amount
        for contract in touched:
            self._owners[contract] = {
                token: left
                for token, holders in sorted(self._balances[contract].items())
                if (left := {holder: amount for holder, amount in holders.items() if amount > 0})
            }
        self.block = block

    def of(self, contract: str) -> Owners:
        """Return the owners of one contract's tokens; callers must not change them."""
        return self._owners.get(contract, {})


def difference(now: Mapping[int, Mapping[str, int]], wanted: Mapping[int, Mapping[str, int]]) -> list[Move]:
    """Return the moves that lead from `now` to `wanted`: from holders with too much to holders with too little."""
    moves: list[Move] = []
    for token in sorted({*now, *wanted}):
        have, want = now.get(token, {}), wanted.get(token, {})
        gaps = {holder: want.get(holder, 0) - have.get(holder, 0) for holder in sorted({*have, *want})}
        givers = [[holder, -gap] for holder, gap in gaps.items() if gap < 0]
        takers = [[holder, gap] for holder, gap in gaps.items() if gap > 0]
        while givers and takers:
            amount = min(givers[0][1], takers[0][1])
            moves.append((givers[0][0], takers[0][0], token, amount))
            for side in (givers, takers):
                side[0][1] -= amount
                if side[0][1] == 0:
                    side.pop(0)
        moves += [(holder, NOBODY, token, amount) for holder, amount in givers]
        moves += [(NOBODY, holder, token, amount) for holder, amount in takers]
    return moves


def _moves(log: dict[str, Any]) -> list[Move]:
    topics, data = log["topics"], words(log["data"])
    if topics[0] == TRANSFER:
        return [(address_in(topics[1]), address_in(topics[2]), int(topics[3], 16), 1)] if len(topics) == 4 else []
    if topics[0] == ASSIGN:
        return [(NOBODY, address_in(topics[1]), data[0], 1)]
    if topics[0] == PUNK_TRANSFER:
        return [(address_in(topics[1]), address_in(topics[2]), data[0], 1)]
    sender, to = address_in(topics[2]), address_in(topics[3])
    if topics[0] == PUNK_BOUGHT:
        return [(sender, to, int(topics[1], 16), 1)]
    if topics[0] == TRANSFER_SINGLE:
        return [(sender, to, data[0], data[1])]
    tokens, amounts = list_at(data, 0), list_at(data, 1)
    return [(sender, to, token, amount) for token, amount in zip(tokens, amounts, strict=True)]
