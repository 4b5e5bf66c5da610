"""Limits that nodes state when they refuse: how many blocks of logs, and how many calls in a batch, would have passed.

The words are those of Alchemy, Infura, ZKsync, QuickNode, mainnet.base.org, publicnode, drpc, reth and erigon.
"""

import re

_NUMBER = r"([1-9][\d,_]{0,11})"
_BLOCKS = tuple(
    re.compile(words.replace("#", _NUMBER), re.IGNORECASE)
    for words in (
        r"# block range",
        r"max(?:imum)? block range(?: is)?:? ?#",
        r"limited to an? # (?:block )?range",
        r"ranges over # blocks",
        r"range \d+ exceeds limit of #",
        r"maximum(?: allowed)?(?: range)?(?: is|:)? # blocks",
    )
)
_SUGGESTED = re.compile(r"\[(0x[0-9a-f]{1,16}), ?(0x[0-9a-f]{1,16})\]", re.IGNORECASE)
"""The ends of a range that would have passed, both included."""
_CALLS = tuple(
    re.compile(words.replace("#", _NUMBER), re.IGNORECASE)
    for words in (r"more than # requests", r"maximum # calls", r"batch (?:size )?limit(?: is|:)? ?#")
)


def stated_blocks(said: str) -> int | None:
    """Return how many blocks of logs the node says that it gives; None where it does not say."""
    found = _first(_BLOCKS, said)
    if found is None and (suggested := _SUGGESTED.search(said)):
        first, last = (int(end, 16) for end in suggested.groups())
        found = last - first + 1 if last >= first else None
    return found


def stated_calls(said: str) -> int | None:
    """Return how many calls in a batch the node says that it takes; None where it does not say."""
    return _first(_CALLS, said)


def _first(patterns: tuple[re.Pattern[str], ...], said: str) -> int | None:
    for pattern in patterns:
        if match := pattern.search(said):
            return int(re.sub("[,_]", "", match[1]))
    return None
