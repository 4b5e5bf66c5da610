"""Contracts that fill blocks with logs: every reader of a chain's logs would wait for theirs, block after block."""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

MOST_OF_ONE = 5_000
"""Logs of one contract in one block, beyond which it is too much although the node gives them all."""


class OneLog(Protocol):
    """What has to be known of a log."""

    address: str
    block_number: str


def floods(logs: Iterable[OneLog], without: str | None) -> dict[str, str]:
    """Return the contracts, in lower case, with more than MOST_OF_ONE logs in one block, and how many these are.

    `without` is a contract that may have as many as it likes.
    """
    counts = Counter((log.address.lower(), log.block_number) for log in logs)
    found = {address: f"{count} logs in one block" for (address, _), count in counts.items() if count > MOST_OF_ONE}
    found.pop((without or "").lower(), None)
    return found
