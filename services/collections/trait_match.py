"""Match a token's traits with a wanted one: pure functions with three-valued answers."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from operator import ge, gt, le, lt

from gateways.chains.metadata_traits import Trait
from services.core.answer import Answer

BETWEEN_SOURCES = ", "
"""Separates the names of sources that gave the same list."""
OF_INDEX = " by "
"""Separates a source from the name of the index that read it."""
FROM_LINK = "linked token metadata"
"""The source if an index gave only the link to the metadata: one document, however many indexes link to it."""
COMPARED = {">=": ge, "≥": ge, "<=": le, "≤": le, ">": gt, "<": lt}
"""How a wanted bound compares a trait's number with its own, by the sign that it begins with."""
_BOUND = re.compile(r"\s*(>=|<=|≥|≤|>|<)\s*(\S+)\s*")
_RANGE = re.compile(r"\s*([^\s.]+(?:\.[0-9]+)?|\.[0-9]+)\s*\.\.\s*(\S+)\s*")
_NUMBER = re.compile(r"[+-]?(\d{1,80}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class TokenTraits:
    """A token's traits from `source`. Unless `whole`, it may have others that could not be read.

    `also` is the whole list from a second source, if one was asked.
    """

    traits: tuple[Trait, ...]
    source: str
    read_at: datetime
    whole: bool = True
    also: "TokenTraits | None" = None

    @property
    def lists(self) -> tuple["TokenTraits", ...]:
        """Return the list of every source, the first one first."""
        return (self,) if self.also is None else (self, self.also)

    @property
    def sources(self) -> frozenset[str]:
        """Return every source of the lists; a list that several sources agree on names them all."""
        return frozenset(name for one in self.lists for name in one.source.split(BETWEEN_SOURCES))


def matches(traits: TokenTraits | None, kind: str, wanted: str) -> Answer:
    """Return whether a token has a trait: yes if any value of that kind matches, unknown if the list is incomplete.

    With two lists, one yes is enough. Kinds and texts match without regard to case and outer spaces. `>=10`, `<=5`
    (also ≥ and ≤), `>10`, `<5` and `5..10` compare numbers; a wanted number equals the same number in any notation.
    """
    if traits is None:
        return Answer.UNKNOWN
    asked = folded(kind)
    if any(_has(one, asked, wanted) for one in traits.lists):
        return Answer.YES
    return Answer.NO if any(one.whole for one in traits.lists) else Answer.UNKNOWN


def match_all(traits: TokenTraits | None, wanted: Iterable[tuple[str, str]]) -> tuple[Answer, str | None]:
    """Return whether a token has all traits (pairs of a type and a value), and the only source of that answer.

    The source is None if two sources agree. One trait that two sources deny is enough for a no from two sources. A
    document to which several indexes link is one source.
    """
    pairs = tuple(wanted)
    answers = [matches(traits, kind, value) for kind, value in pairs]
    denied = [pair for pair, answer in zip(pairs, answers, strict=True) if answer is Answer.NO]
    answer = Answer.NO if denied else Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.YES
    if traits is None:
        return answer, None
    sources = [only_source(traits, kind, value) for kind, value in denied or pairs]
    if denied and None in sources:
        return answer, None
    return answer, next((one for one in sources if one is not None), None)


def only_source(traits: TokenTraits, kind: str, wanted: str) -> str | None:
    """Return the only source that supports the answer of `matches`, or None if two sources agree in full."""
    if traits.also is None and BETWEEN_SOURCES not in traits.source:
        return traits.source
    asked, answer = folded(kind), matches(traits, kind, wanted) is Answer.YES
    agreeing = [one for one in traits.lists if _has(one, asked, wanted) is answer and (answer or one.whole)]
    names = list(dict.fromkeys(name for one in agreeing for name in one.source.split(BETWEEN_SOURCES)))
    if len(names) > 1 and all(map(is_link, names)):
        return FROM_LINK
    return names[0] if len(names) == 1 else None


def is_link(source: str) -> bool:
    """Return whether the source is the document to which an index, or several, link."""
    return source.partition(OF_INDEX)[0] == FROM_LINK


def _has(traits: TokenTraits, kind: str, wanted: str) -> bool:
    return any(_fits(trait.value, wanted) for trait in traits.traits if folded(trait.kind) == kind)


def folded(text: str) -> str:
    """Return the form for comparing texts: composed, case-folded, without invisible characters and outer spaces."""
    # Nearly every text has nothing invisible, and a member may hold thousands of tokens with long traits.
    visible = text
    if not text.isprintable():
        visible = "".join(one for one in text if one.isspace() or unicodedata.category(one)[0] != "C")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", visible).casefold()).strip()


def _fits(value: str | int | float, wanted: str) -> bool:
    if folded(str(value)) == folded(wanted):
        return True
    number = number_in(value)
    if number is None:
        return False
    if (between := range_in(wanted)) is not None:
        first, last = map(number_in, between)
        return first is not None and last is not None and first <= number <= last
    bound = _BOUND.fullmatch(wanted)
    limit = number_in(bound[2] if bound else wanted)
    if limit is None:
        return False
    if bound is None:
        return number == limit
    return COMPARED[bound[1]](number, limit)


def range_in(wanted: str) -> tuple[str, str] | None:
    """Return both ends of a wanted range of numbers (`5..10`) as written; None for any other text with two dots."""
    found = _RANGE.fullmatch(wanted)
    if found is None or any(number_in(end) is None for end in found.groups()):
        return None
    return found[1], found[2]


def number_in(value: str | int | float) -> Decimal | None:
    """Return the value as a number, or None if it is not one."""
    text = str(value).strip()
    try:
        return Decimal(text) if _NUMBER.fullmatch(text) else None
    except InvalidOperation:
        return None
