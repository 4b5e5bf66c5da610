"""Marks, which stand for texts while the screens are built, until `locales.screens` writes the texts of each language.

A mark holds the call that reads the text. It consists of letters, digits and `~:_-`, so that it passes through HTML,
JavaScript and a minifier unchanged.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import Any, Self, cast

MARKED = "marked"
"""The name of the language in which every text is a mark."""
WHILE_BUILDING = "HOLDFAST_MARK_TEXTS"
"""The environment variable with which a process reads marks."""
TEXT, PLURAL, IN_CONTEXT, LIST, FORMS = "text", "plural", "context", "list", "forms"
LANGUAGE, SPOKEN, NUMBER, PIECE = "language", "spoken", "number", "piece"
_MARK = re.compile(r"~t:([\w-]+)~(?:~v:([0-9a-f]+)~)?")
# The scripts of the screens themselves have the beginning of a mark between quotes.
_LEFT = re.compile(r"~t:\w")

Call = tuple[str, list[Any], dict[str, Any]]
"""The call that a mark holds: its kind, its arguments, and the values for the places in the text."""


class Mark(str):
    """The mark of a text; `format` keeps the values for its places."""

    __slots__ = ()

    @classmethod
    def of(cls, kind: str, *arguments: object, **values: object) -> Self:
        """Return the mark of a text of a kind."""
        packed = base64.urlsafe_b64encode(json.dumps([kind, arguments, values]).encode()).decode().rstrip("=")
        return cls(f"~t:{packed}~")

    def format(self, *args: object, **values: object) -> str:
        """Return the mark with values that are known while the screens are built. Raises TypeError for others."""
        for value in values.values():
            if not isinstance(value, str | int | float) or args:
                raise TypeError(f"{type(value).__name__} is not known while the screens are built; use `filled`")
        found = _MARK.fullmatch(self)
        assert found is not None, self
        kind, arguments, _ = _call(found)
        return Mark.of(kind, *arguments, **values)


def english_of(text: str) -> str:
    """Return a text with each mark replaced by its English text, for a name that is the same in every language."""
    return _MARK.sub(lambda found: str(_call(found)[1][0]), text)


def has_marks(text: str) -> bool:
    """Return whether a mark, or a part of one, is left in a text."""
    return _LEFT.search(text) is not None


def replaced(text: str, read: Callable[[Call], str], escape: Callable[[str], str]) -> str:
    """Return a text with each mark replaced by what `read` returns, escaped for the file that the text is in."""
    return _MARK.sub(lambda found: escape(_read(found, read)), text)


def _read(found: re.Match[str], read: Callable[[Call], str]) -> str:
    kind, arguments, values = _call(found)
    # A value, or a word of a list, may be a mark as well.
    return read((kind, _read_inside(arguments, read), _read_inside(values, read)))


def _read_inside(value: Any, read: Callable[[Call], str]) -> Any:
    match value:
        case str():
            return _MARK.sub(lambda found: _read(found, read), value)
        case list():
            return [_read_inside(each, read) for each in cast("list[object]", value)]
        case dict():
            return {name: _read_inside(each, read) for name, each in cast("dict[str, object]", value).items()}
        case _:
            return value


def _call(found: re.Match[str]) -> Call:
    packed, more = found.groups()
    kind, arguments, values = json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
    # The values that a page had when it was prerendered (assets/screens/texts.js), as UTF-16 in hexadecimal digits.
    values |= json.loads(bytes.fromhex(more).decode("utf-16-be")) if more else {}
    return kind, arguments, values
