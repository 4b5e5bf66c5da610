"""Token ids as people write them: one id, a range, or a list with commas. A range stays one entry."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from locales import _
from services.core.addresses import is_solana
from services.core.errors import FieldRefused

FIELD = "tokenIds"
LARGEST = 2**256 - 1
MOST_ENTRIES = 500
LONGEST_ENTRY = 200
"""Maximum characters of an entry: a range of the two largest ids has 157, and spaces may surround it."""
_NUMBER = re.compile(r"[0-9]{1,78}")
_RANGE = re.compile(r"([0-9]{1,78})\s*[-–]\s*([0-9]{1,78})")


def added(entries: Sequence[str], text: str, chain: str) -> tuple[str, ...]:
    """Return the entries with those in the text added: ids and ranges as `100-200`, or mint addresses on Solana.

    An empty text adds nothing. Raises FieldRefused for an invalid id, a range that is reversed or too large, and an
    entry that is already covered.
    """
    _bound([text])
    found = _Entries(chain)
    for entry in entries:
        found.keep(entry)
    found.add(text)
    return tuple(found.listed)


def normal(entries: Sequence[str], chain: str) -> tuple[str, ...]:
    """Return a whole list, normalised. Raises FieldRefused as `added` does."""
    _bound(entries)
    found = _Entries(chain)
    for entry in entries:
        found.add(entry)
    return tuple(found.listed)


def _bound(texts: Sequence[str]) -> None:
    """Raise FieldRefused for more entries than a rule can name. It only counts: no text is parsed, however long."""
    if (
        len(texts) > 2 * MOST_ENTRIES
        or sum(map(len, texts)) > MOST_ENTRIES * LONGEST_ENTRY
        or sum(text.count(",") for text in texts) > 2 * MOST_ENTRIES
    ):
        raise _too_many()


class _Entries:
    """Entries in their order, and the ids that they cover, so that adding one entry costs one search."""

    def __init__(self, chain: str) -> None:
        self.listed: list[str] = []
        self._parse = _mint if chain == "solana" else _entry
        self._mints: set[str] = set()
        # The ranges that no other range contains: both lists ascend, and each pair is one range.
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, text: str) -> None:
        """Append the entries in the text. Raises FieldRefused."""
        for part in (piece.strip() for piece in text.split(",")):
            if not part:
                continue
            if len(self.listed) >= MOST_ENTRIES:
                raise _too_many()
            entry = self._parse(part)
            if not self.keep(entry):
                raise FieldRefused(FIELD, _("{entry} is already in the list.").format(entry=_short(entry)))

    def keep(self, entry: str) -> bool:
        """Append a normalised entry; return False if the others cover it already."""
        self.listed.append(entry)
        found = bounds(entry)
        if found is None:
            is_new = entry not in self._mints
            self._mints.add(entry)
            return is_new
        first, last = found
        before = bisect_right(self._firsts, first) - 1
        if before >= 0 and self._lasts[before] >= last:
            return False
        begin, end = bisect_left(self._firsts, first), bisect_right(self._lasts, last)
        self._firsts[begin:end], self._lasts[begin:end] = [first], [last]
        return True


def _too_many() -> FieldRefused:
    return FieldRefused(
        FIELD,
        _("A rule names at most {most_entries} token IDs and ranges. Use ranges for more.").format(
            most_entries=MOST_ENTRIES
        ),
    )


def bounds(entry: str) -> tuple[int, int] | None:
    """Return the first and the last id of a normalised entry; None for a mint address."""
    first, dash, last = entry.partition("-")
    if not _NUMBER.fullmatch(first):
        return None
    return int(first), int(last if dash else first)


def check_stored(entries: Sequence[str], chain: str) -> None:
    """Raise ValueError unless this version knows all of these entries, which a newer one may have written."""
    for entry in entries:
        if not (is_solana(entry) if chain == "solana" else bounds(entry)):
            raise ValueError(f"no token is called {_short(entry)!r}")


def _entry(part: str) -> str:
    if _NUMBER.fullmatch(part):
        first = last = int(part)
    elif match := _RANGE.fullmatch(part):
        first, last = int(match[1]), int(match[2])
    else:
        raise FieldRefused(
            FIELD,
            _("{part} is not a token ID. Write a number like 42, a range like 100-200, or several with commas.").format(
                part=_short(part)
            ),
        )
    if first > last:
        turned = _short(f"{last}-{first}")
        raise FieldRefused(
            FIELD,
            _("{part} runs backwards. Write the smaller ID first: {turned}.").format(part=_short(part), turned=turned),
        )
    if last > LARGEST:
        raise FieldRefused(FIELD, _("{part} is larger than any token ID.").format(part=_short(part)))
    return str(first) if first == last else f"{first}-{last}"


def _mint(part: str) -> str:
    if not is_solana(part):
        raise FieldRefused(
            FIELD,
            _("{part} is not a mint address. On Solana tokens are named by theirs, and there are no ranges.").format(
                part=_short(part)
            ),
        )
    return part


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:40]}…"
