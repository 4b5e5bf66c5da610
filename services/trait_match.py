"""A token's traits, and whether they are what somebody wants; pure, and unknown is not no."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation

from gateways.attributes import Trait
from services.expressions import Answer

_AT_LEAST = (">=", "≥")
_BOUND = re.compile(r"\s*(>=|<=|≥|≤)\s*(\S+)\s*")
_NUMBER = re.compile(r"[+-]?(\d{1,80}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class TokenTraits:
    """A token's traits as `source` told them. Unless `whole`, it may have others that nobody could read."""

    traits: tuple[Trait, ...]
    source: str
    read_at: datetime
    whole: bool = True


def matches(traits: TokenTraits | None, kind: str, wanted: str) -> Answer:
    """Whether a token has a trait: yes if any of its values of that kind fits, unknown while not all can be known.

    Kinds and texts fit without regard to case and outer spaces. `>=10` and `<=5` (also ≥ and ≤) want a number at least
    or at most so large; a wanted number fits the same number however it is written.
    """
    if traits is None:
        return Answer.UNKNOWN
    asked = folded(kind)
    if any(_fits(trait.value, wanted) for trait in traits.traits if folded(trait.kind) == asked):
        return Answer.YES
    return Answer.NO if traits.whole else Answer.UNKNOWN


def folded(text: str) -> str:
    """What texts are compared by: composed, in one case, without what is invisible and without outer spaces."""
    visible = "".join(one for one in text if one.isspace() or unicodedata.category(one)[0] != "C")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", visible).casefold()).strip()


def _fits(value: str | int | float, wanted: str) -> bool:
    if folded(str(value)) == folded(wanted):
        return True
    number = number_in(value)
    if number is None:
        return False
    bound = _BOUND.fullmatch(wanted)
    limit = number_in(bound[2] if bound else wanted)
    if limit is None:
        return False
    if bound is None:
        return number == limit
    return number >= limit if bound[1] in _AT_LEAST else number <= limit


def number_in(value: str | int | float) -> Decimal | None:
    """The number that a value is, or that a text is written as; None for any other text."""
    text = str(value).strip()
    try:
        return Decimal(text) if _NUMBER.fullmatch(text) else None
    except InvalidOperation:
        return None
