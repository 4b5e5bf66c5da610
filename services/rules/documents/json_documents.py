"""Read JSON that a stranger wrote: bounded in size and depth, every number exact, no field twice."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar, Final, cast

from locales import N_, _
from services.core.errors import FieldRefused, HoldfastError
from services.core.untrusted_json import can_be_kept, levels

FIELD: Final = "document"
LARGEST_DOCUMENT = 1024 * 1024
"""Maximum bytes of a document."""
DEEPEST = 24
"""Maximum levels of a document; the documents that we write have at most 9."""
MOST_PARTS, MOST_VALUES = 50_000, 150_000
"""Maximum objects and lists of a document, and maximum commas: more than 200 of the largest rules have. Each costs time
and memory."""
_LONGEST_NUMBER = 100
_TOO_DEEP = N_("The document is nested more than {most} levels deep.")
_UNKEPT = N_("The document has texts with characters that cannot be stored.")
_UNUSUAL = re.compile(r"\\u0000|\\u[dD][89a-fA-F]")
"""Escapes that may stand for what cannot be stored. The parser distinguishes half a surrogate pair from a whole one."""


class DocumentRefused(FieldRefused):
    """The document cannot be read; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(FIELD, message)


class DocumentTooLarge(HoldfastError):
    """The document has more bytes than allowed; none of it was parsed."""

    status: ClassVar[int] = 413

    def __init__(self, largest: int = LARGEST_DOCUMENT) -> None:
        super().__init__(_("The document is larger than {size} KiB.").format(size=largest // 1024))


class _FieldTwice(Exception):
    """An object has the same field twice."""


async def read(given: bytes | str, *, largest: int = LARGEST_DOCUMENT) -> Any:
    """Return the JSON value in a text; whole numbers are `int`, all others `Decimal`.

    Raises DocumentRefused, DocumentTooLarge. Size and number of values are checked before anything is parsed.
    """
    if len(given) > largest or (isinstance(given, str) and len(given.encode(errors="replace")) > largest):
        raise DocumentTooLarge(largest)
    text = _decoded(given) if isinstance(given, bytes) else given
    if not can_be_kept(text):
        raise DocumentRefused(_(_UNKEPT))
    if text.count("[") + text.count("{") > MOST_PARTS or text.count(",") > MOST_VALUES:
        raise DocumentRefused(_("The document has far more values than rules can have."))
    # In a thread: the parser's hooks are Python code, so the event loop can run in between.
    return await asyncio.to_thread(_checked, text.removeprefix("\ufeff"))


def _checked(text: str) -> Any:
    value, unusual = _parsed(text), _UNUSUAL.search(text) is not None
    for depth, level in enumerate(levels(value)):
        if depth >= DEEPEST and any(isinstance(one, list | dict) for one in level):
            raise DocumentRefused(_(_TOO_DEEP).format(most=DEEPEST))
        if unusual and not all(can_be_kept(one) for one in level if isinstance(one, str)):
            raise DocumentRefused(_(_UNKEPT))
    return value


def _parsed(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_int=_whole, parse_float=_decimal, parse_constant=_no_number
        )
    except json.JSONDecodeError as fault:
        raise DocumentRefused(
            _("This is not JSON: line {line}, character {column}. Paste the whole document.").format(
                line=fault.lineno, column=fault.colno
            )
        ) from None
    except _FieldTwice as fault:
        raise DocumentRefused(
            _("An object has the field {field} twice, so its meaning is unclear. Remove one of them.").format(
                field=shown(fault.args[0])
            )
        ) from None
    except RecursionError:
        raise DocumentRefused(_(_TOO_DEEP).format(most=DEEPEST)) from None


def _decoded(given: bytes) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError:
        raise DocumentRefused(_("The document is not a text in UTF-8.")) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _FieldTwice(name)
        found[name] = value
    return found


def _whole(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else _decimal(digits)


def _decimal(digits: str) -> Decimal:
    # A number with more digits than any amount becomes infinite, which no field accepts.
    return Decimal(digits) if len(digits) <= _LONGEST_NUMBER else Decimal("Infinity")


def _no_number(name: str) -> Any:
    raise DocumentRefused(_("This is not JSON: {text} is not a number.").format(text=name))


def shown(value: object, longest: int = 40) -> str:
    """Return a value of a document in the form for a sentence: on one line, short, in quotation marks."""
    from_text = value if isinstance(value, str) else str(value) if isinstance(value, int | Decimal) else "…"
    line = " ".join("".join(one if one.isprintable() else " " for one in from_text[: 4 * longest]).split())
    return f"“{line if len(line) <= longest else line[: longest - 1] + '…'}”"


def is_node(value: object) -> bool:
    """Return whether a value of a document is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> bool:
    """Return whether a value of a document is a list."""
    return isinstance(value, list)


def node_of(value: object) -> Mapping[str, Any]:
    """Return an object of a document; an empty one for any other value."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> Sequence[Any]:
    """Return a list of a document; an empty one for any other value."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def text_of(value: object) -> str:
    """Return a text, or a whole number as one, such as an id; an empty text for any other value."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def is_given(value: object) -> bool:
    """Return whether a field has a value other than null, false, or an empty text, list or object."""
    return value is not None and value is not False and value != "" and value != [] and value != {}


def unknown_fields(node: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """Return the names of the unknown fields that have a value (see `is_given`), in their order."""
    names = frozenset(known)
    return [name for name, value in node.items() if name not in names and is_given(value)]
