"""Choose which tokens' traits to read if there are too many: members take turns, failed tokens come last."""

import random
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping

from services.collections.trait_match import TokenTraits
from services.collections.trait_sources import TokenKey

FAILED_FOR = 1_800.0
"""Seconds for which a failed token comes after those that have not failed."""
MOST_REMEMBERED = 50_000

_failed: OrderedDict[TokenKey, float] = OrderedDict()
"""When each token last failed, in monotonic seconds, the oldest first."""


def choose(wanted: Mapping[Hashable, Iterable[TokenKey]], most: int) -> list[TokenKey]:
    """Return at most `most` of the tokens that members (the keys) wait for, each once.

    Every member's first token comes before any member's second one; which is first is random.
    """
    since = time.monotonic() - FAILED_FOR
    turns: dict[TokenKey, tuple[bool, int, float]] = {}
    for tokens in wanted.values():
        mine = [(_failed.get(token, since) > since, random.random(), token) for token in set(tokens)]
        for turn, (failed, chance, token) in enumerate(sorted(mine)):
            before = turns.get(token)
            turns[token] = (failed, turn, chance) if before is None else min(before, (failed, turn, chance))
    return sorted(turns, key=turns.__getitem__)[:most]


def remember(found: Mapping[TokenKey, TokenTraits | str]) -> None:
    """Record which of these tokens could not be read."""
    now = time.monotonic()
    for token, told in found.items():
        _failed.pop(token, None)
        if isinstance(told, str):
            _failed[token] = now
    while len(_failed) > MOST_REMEMBERED:
        _failed.popitem(last=False)
