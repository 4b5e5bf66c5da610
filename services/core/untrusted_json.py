"""JSON that anybody may send: which of its texts the database can store, and what it holds on each level."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import cast


def has_utf_8(text: str) -> bool:
    """Return whether the text can be encoded as UTF-8. Half a surrogate pair, which JSON can carry, cannot.

    Encoding 60 KB takes a microsecond. A loop over the characters takes 8 ms and blocks the event loop.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def can_be_kept(text: str) -> bool:
    """Return whether PostgreSQL can store the text: it can be encoded as UTF-8 and contains no NUL."""
    return "\x00" not in text and has_utf_8(text)


def levels(value: object) -> Iterator[list[object]]:
    """Yield a parsed value and then what is inside it, level by level: lists, objects, their names, texts and numbers.

    It never calls itself, so a value nested thousands of times costs no stack.
    """
    level = [value]
    while level:
        yield level
        level = [inner for one in level for inner in _inside(one)]


def is_deeper(value: object, most: int) -> bool:
    """Return whether something in the value lies below that many lists and objects."""
    return next(islice(levels(value), most, None), None) is not None


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        fields = cast("dict[object, object]", value)
        return [*fields, *fields.values()]
    return cast("list[object]", value) if isinstance(value, list) else ()
