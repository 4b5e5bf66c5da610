"""Contracts that fill blocks with logs and would slow down every reader of the chain's logs, block after block."""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

MOST_OF_ONE = 5_000
"""The most logs of one contract in one block. More are too many, even if the node gives them all."""


class OneLog(Protocol):
    """The fields of a log that are needed here."""

    address: str
    block_number: str


def floods(logs: Iterable[OneLog], without: str | None) -> dict[str, str]:
    """Return the contracts, in lower case, with over MOST_OF_ONE logs in one block, each with a text saying how many.

    `without` is a contract to which the limit does not apply.
    """
    counts = Counter((log.address.lower(), log.block_number) for log in logs)
    found = {address: f"{count} logs in one block" for (address, _), count in counts.items() if count > MOST_OF_ONE}
    found.pop((without or "").lower(), None)
    return found
