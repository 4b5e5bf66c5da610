"""The balances of many owners in many contracts at one block: the result of a bulk read, one byte a cell."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

UNKNOWN = 0
LARGE = 255
MOST = 2**256 - 2
"""The largest amount that is reported; a larger one is reported as this."""
NATIVE = "native"
"""Used in place of a contract for the chain's own coin."""
NATIVE_ADDRESS = "0x" + 20 * "ee"
"""Stands for the chain's own coin among an EVM chain's contracts; no contract is there."""
MOST_INDEXED = 50_000
"""The most owners of a sheet for which a dictionary (some 5 MB) is built to find them quickly."""


def packed(addresses: Iterable[str]) -> bytes:
    """Return EVM addresses as 20 bytes each, sorted and without duplicates. Raises ValueError for any other text."""
    found = set[bytes]()
    for address in addresses:
        raw = bytes.fromhex(address[2:]) if address[:2] in {"0x", "0X"} else b""
        if len(raw) != 20:
            raise ValueError(f"{address!r} is not an EVM address")
        found.add(raw)
    return b"".join(sorted(found))


@dataclass(frozen=True, slots=True)
class Segment:
    """Contracts and owners to ask about: each contract is asked about each owner.

    `coins` are the contracts that usually have large amounts; NATIVE is the chain's own coin.
    """

    contracts: tuple[str, ...]
    owners: tuple[str, ...]
    coins: frozenset[str] = frozenset()


@dataclass(slots=True)
class Cells:
    """Amounts by contract and owner, both as positions in packed addresses.

    A cell is 0 for an unknown amount, the amount plus one for amounts up to 253, and 255 where `large` has the amount.
    """

    contracts: int
    owners: int
    rows: list[bytearray] = field(init=False)
    large: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def __post_init__(self) -> None:
        self.rows = [bytearray(self.owners) for _ in range(self.contracts)]

    def put(self, contract: int, owner: int, amount: int | None) -> None:
        """Set one cell."""
        if amount is None:
            self.rows[contract][owner] = UNKNOWN
        elif amount < LARGE - 1:
            self.rows[contract][owner] = amount + 1
        else:
            self.rows[contract][owner] = LARGE
            self.large[contract, owner] = min(amount, MOST)

    def get(self, contract: int, owner: int) -> int | None:
        """Return one cell's amount; None is unknown."""
        cell = self.rows[contract][owner]
        if cell == UNKNOWN:
            return None
        return cell - 1 if cell != LARGE else self.large.get((contract, owner))


@dataclass(slots=True)
class Asked:
    """A segment that is being read: its packed contracts and owners (20 bytes each), and the cells to fill.

    `coins` are the contracts that usually have large amounts.
    """

    contracts: bytes
    owners: bytes
    coins: frozenset[bytes] = frozenset()
    cells: Cells = field(init=False)

    def __post_init__(self) -> None:
        self.cells = Cells(len(self.contracts) // 20, len(self.owners) // 20)

    def contract(self, place: int) -> bytes:
        """Return the contract at a place."""
        return self.contracts[place * 20 : place * 20 + 20]

    def inexact(self, contract: int) -> list[int]:
        """Return the places of the owners whose amount is large and not exactly known yet."""
        row, found, at = self.cells.rows[contract], list[int](), -1
        while (at := row.find(LARGE, at + 1)) >= 0:
            if (contract, at) not in self.cells.large:
                found.append(at)
        return found

    def forget_inexact(self) -> None:
        """Make amounts unknown that are large and were not read exactly."""
        for contract, row in enumerate(self.cells.rows):
            for at in self.inexact(contract):
                row[at] = UNKNOWN

    def knows_something(self) -> bool:
        """Return whether any amount is known."""
        return any(any(row) for row in self.cells.rows)


@dataclass(frozen=True, slots=True)
class BalanceSheet:
    """Every owner's balance in every contract at one block of one chain, as one node reported it.

    `source` names the node for people ("Base node 1"), `endpoint` is its place in the settings. An amount is the
    result of `balanceOf(address)`; for NATIVE it is the account's own balance in the coin's smallest unit.
    """

    chain: str
    block: int
    block_time: datetime
    endpoint: int
    source: str
    contracts: bytes
    owners: bytes
    cells: Cells
    _places: dict[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)
    _rows: dict[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)

    @property
    def owner_count(self) -> int:
        """The number of owners that were asked about."""
        return len(self.owners) // 20

    def amount(self, contract: str, owner: str) -> int | None:
        """Return how many the owner held; None is *unknown* (also for a contract or owner that was not asked about)."""
        row, column = self._row(contract), self._column(owner)
        return None if row is None or column is None else self.cells.get(row, column)

    def _column(self, owner: str) -> int | None:
        """Return the owner's place.

        The first call makes a dictionary of places. Where that would be too large, bisection finds the place.
        """
        if len(self.owners) > 20 * MOST_INDEXED:
            return _place(self.owners, owner)
        if not self._places:
            # In one step, because other threads may read it too.
            self._places.update(_places(self.owners))
        return self._places.get(owner.lower())

    def _row(self, contract: str) -> int | None:
        """Return the contract's place."""
        if not self._rows:
            self._rows.update(_places(self.contracts))
        return self._rows.get(NATIVE_ADDRESS if contract == NATIVE else contract.lower())

    def row(self, contract: str) -> bytes:
        """Return the cells of a contract, in the owners' order (see Cells); all unknown if it was not asked about."""
        place = self._row(contract)
        return bytes(self.owner_count) if place is None else bytes(self.cells.rows[place])

    def amounts(self, contract: str) -> list[int | None]:
        """Return the amounts of a contract, in the owners' order; None is unknown."""
        place = self._row(contract)
        if place is None:
            return [None] * self.owner_count
        return [
            None if cell == UNKNOWN else cell - 1 if cell != LARGE else self.cells.large.get((place, column))
            for column, cell in enumerate(self.cells.rows[place])
        ]

    def holders(self, contract: str) -> Iterator[tuple[str, int]]:
        """Yield each owner known to hold some, in lower case, with the amount."""
        row = self._row(contract)
        if row is None:
            return
        for column, cell in enumerate(self.cells.rows[row]):
            if cell > 1:
                yield "0x" + self.owners[column * 20 : column * 20 + 20].hex(), self.cells.get(row, column) or 0

    def unknown(self, contract: str) -> int:
        """Return how many of the owners' amounts are unknown."""
        row = self._row(contract)
        return self.owner_count if row is None else self.cells.rows[row].count(UNKNOWN)

    def says_nothing(self, contract: str) -> bool:
        """Return whether no owner's amount is known: the contract has no balances, or was not asked about."""
        return self.unknown(contract) == self.owner_count


def _places(blob: bytes) -> dict[str, int]:
    names = blob.hex()
    return {"0x" + names[at : at + 40]: at // 40 for at in range(0, len(names), 40)}


def _place(blob: bytes, address: str) -> int | None:
    try:
        raw = bytes.fromhex(address[2:])
    except ValueError:
        return None
    place = bisect_left(range(len(blob) // 20), raw, key=lambda at: blob[at * 20 : at * 20 + 20])
    return place if raw and blob[place * 20 : place * 20 + 20] == raw else None
