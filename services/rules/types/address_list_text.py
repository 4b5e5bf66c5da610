"""Read addresses from a pasted text or a CSV file, line by line; every mistake names its line."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import cast

from locales import _, ngettext, number
from services.core.addresses import SOLANA_LONGEST, SOLANA_SHORTEST, AddressRefused, parse
from services.core.errors import FieldRefused
from services.rules.types.address_list import ADDRESSES
from services.runtime.loop_steps import in_steps

MOST_ADDRESSES = 20_000
NAMED_MISTAKES = 5
"""How many mistakes the message names; it only counts the others."""
MOST_MISTAKES = 200
"""Maximum mistakes in the answer for programs."""
MOST_READ = 1_000
"""Mistakes after which the rest is not read."""
_LONGEST_SHOWN = 60
_SEPARATORS = re.compile(r"[,;\s]+")
_QUOTES = "\ufeff\"'"
_MEANT = re.compile(rf"0[xX].*|[1-9A-HJ-NP-Za-km-z]{{{SOLANA_SHORTEST},{SOLANA_LONGEST}}}")
"""A cell that looks like an address, mistyped or not."""
_HEADING = re.compile(r"[A-Za-z][A-Za-z_()#-]{0,29}")


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong in one line."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReadList:
    """The addresses of a list, normalised and sorted, and the digest that names them."""

    addresses: tuple[str, ...]
    digest: str

    @property
    def count(self) -> int:
        """How many addresses it has."""
        return len(self.addresses)

    def among(self, addresses: AbstractSet[str]) -> frozenset[str]:
        """Return those of these addresses that are on the list."""
        return frozenset(addresses).intersection(self.addresses)


class ListRefused(FieldRefused):
    """A list with mistakes: the message names the first ones by their lines, `more` has them for programs."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        told = _("Line {line}: {reason}")
        named = [told.format(line=one.line, reason=one.reason) for one in mistakes[:NAMED_MISTAKES]]
        if (more := len(mistakes) - len(named)) > 0:
            named.append(ngettext("And {count} more line.", "And {count} more lines.", more).format(count=more))
        super().__init__(ADDRESSES, " ".join(named))
        self.more: Mapping[str, object] = {
            "mistakes": [
                {"line": one.line, "text": one.text, "reason": one.reason} for one in mistakes[:MOST_MISTAKES]
            ],
            "mistakesInAll": len(mistakes),
        }


async def of_text(text: str) -> ReadList:
    """Read a pasted text or a CSV file. Raises FieldRefused; ListRefused for mistakes in lines.

    A line has one or more addresses; its other cells are left out, and so is a first line that is a heading.
    """
    return await _read(_of_text(text))


async def of_items(items: object) -> ReadList:
    """Read a list of texts, each an address; the first one counts as line 1. Raises as `of_text` does."""
    if not isinstance(items, list):
        raise FieldRefused(ADDRESSES, _("addresses must be a list of texts."))
    return await _read(in_steps(enumerate(cast("list[object]", items), 1)))


async def _of_text(text: str) -> AsyncIterator[tuple[int, object]]:
    """Yield what `_of_lines` yields, read in a thread: a text may have two million lines without an entry."""
    entries = _of_lines(text)
    while some := await asyncio.to_thread(lambda: list(islice(entries, MOST_READ))):
        async for one in in_steps(some):
            yield one


def _of_lines(text: str) -> Iterator[tuple[int, object]]:
    """Yield each address with the number of its line; for a line without one, its first cell."""
    begun = False
    for place, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        cells = [cell for one in _SEPARATORS.split(line) if (cell := one.strip(_QUOTES))]
        meant = [cell for cell in cells if _MEANT.fullmatch(cell)]
        heading = not begun and not meant and all(_HEADING.fullmatch(cell) for cell in cells)
        begun = begun or bool(cells)
        if not heading:
            yield from ((place, cell) for cell in meant or cells[:1])


async def _read(entries: AsyncIterator[tuple[int, object]]) -> ReadList:
    """Read numbered entries, in steps: a checksum takes time, and there may be thousands of entries."""
    found: dict[str, int] = {}
    mistakes: list[Mistake] = []
    async for line, entry in entries:
        try:
            if not isinstance(entry, str):
                raise AddressRefused(_("An address is a text."))
            address = parse(entry)[1]
        except AddressRefused as fault:
            mistakes.append(Mistake(line, str(entry)[:_LONGEST_SHOWN], str(fault)))
        else:
            if (before := found.get(address)) is None:
                found[address] = line
            else:
                told = _("This address is in line {line} already.").format(line=before)
                mistakes.append(Mistake(line, address, told))
        if len(found) > MOST_ADDRESSES:
            raise FieldRefused(
                ADDRESSES,
                _("A list has at most {most_addresses} addresses.").format(most_addresses=number(MOST_ADDRESSES)),
            )
        if len(mistakes) >= MOST_READ:
            break
    if mistakes:
        raise ListRefused(mistakes)
    if not found:
        raise FieldRefused(ADDRESSES, _("Add the addresses of the list."))
    addresses = tuple(sorted(found))
    return ReadList(addresses, hashlib.sha256("\n".join(addresses).encode()).hexdigest()[:32])
