"""Token ids as people write them: one id, a range, or a list with commas; a range stays one entry, however long."""

import re
from collections.abc import Iterable

from services.addresses import is_solana
from services.errors import FieldRefused

FIELD = "tokenIds"
LARGEST = 2**256 - 1
MOST_ENTRIES = 500
_NUMBER = re.compile(r"[0-9]{1,78}")
_RANGE = re.compile(r"([0-9]{1,78})\s*[-–]\s*([0-9]{1,78})")


def added(entries: Iterable[str], text: str, chain: str) -> tuple[str, ...]:
    """The entries and those that the text names: ids and inclusive ranges as `100-200`, on Solana mint addresses.

    An empty text adds nothing. Raises FieldRefused for what is no id, a range that runs backwards or is too large, and
    what is there already, alone or within a range.
    """
    found = list(entries)
    for part in (piece.strip() for piece in text.split(",")):
        if part:
            entry = _mint(part) if chain == "solana" else _entry(part)
            if any(_covers(one, entry) for one in found):
                raise FieldRefused(FIELD, f"{_short(entry)} is already in the list.")
            found.append(entry)
    if len(found) > MOST_ENTRIES:
        raise FieldRefused(FIELD, f"A rule names at most {MOST_ENTRIES} token IDs and ranges. Use ranges for more.")
    return tuple(found)


def normal(entries: Iterable[str], chain: str) -> tuple[str, ...]:
    """A whole list in its one form. Raises FieldRefused as `added` does."""
    found: tuple[str, ...] = ()
    for entry in entries:
        found = added(found, entry, chain)
    return found


def bounds(entry: str) -> tuple[int, int] | None:
    """The first and the last id of an entry in its one form; None for a mint address."""
    first, dash, last = entry.partition("-")
    if not _NUMBER.fullmatch(first):
        return None
    return int(first), int(last if dash else first)


def _entry(part: str) -> str:
    if _NUMBER.fullmatch(part):
        first = last = int(part)
    elif match := _RANGE.fullmatch(part):
        first, last = int(match[1]), int(match[2])
    else:
        raise FieldRefused(
            FIELD,
            f"{_short(part)} is not a token ID. Write a number like 42, a range like 100-200, or several with commas.",
        )
    if first > last:
        turned = _short(f"{last}-{first}")
        raise FieldRefused(FIELD, f"{_short(part)} runs backwards. Write the smaller ID first: {turned}.")
    if last > LARGEST:
        raise FieldRefused(FIELD, f"{_short(part)} is larger than any token ID.")
    return str(first) if first == last else f"{first}-{last}"


def _mint(part: str) -> str:
    if not is_solana(part):
        raise FieldRefused(
            FIELD,
            f"{_short(part)} is not a mint address. On Solana tokens are named by theirs, and there are no ranges.",
        )
    return part


def _covers(one: str, other: str) -> bool:
    """Whether every id of `other` is in `one`."""
    ours, theirs = bounds(one), bounds(other)
    if ours is None or theirs is None:
        return one == other
    return ours[0] <= theirs[0] and theirs[1] <= ours[1]


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:40]}…"
