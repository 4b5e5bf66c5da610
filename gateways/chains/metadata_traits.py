"""The traits in a token's metadata, which authors write in many forms, read into one list of kinds and values."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from gateways.transport.plain_text import plain

LONGEST_KIND, LONGEST_VALUE, LONGEST_NUMBER = 200, 500, 80
MOST_TRAITS, LONGEST_LIST = 500, 20_000
"""The most traits that are read of one token, and their characters together. No real list is longer, so the rest is not
read: anybody can make tokens, and each trait is stored and compared for every member who holds the token."""
# Display types whose values marketplaces read as numbers, even where the author wrote a text.
_NUMBERS = frozenset({"number", "date", "boost_number", "boost_percentage"})
# A JSON object with one of these keys describes a token, and not an error or the state of a page.
_TELLING = frozenset({
    "name", "description", "image", "image_url", "image_data", "animation_url", "attributes", "traits", "properties",
})  # fmt: skip
_NO_TRAITS = frozenset({"files", "creators", "category"})
"""Entries of `properties` that are not traits."""

_UNREADABLE = object()


class NoMetadata(Exception):
    """The document does not describe a token, or its traits cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Trait:
    """One trait. `kind` is its type's name, empty where the author gave none; a value that is a number stays one."""

    kind: str
    value: str | int | float


@dataclass(frozen=True, slots=True)
class TraitList:
    """A token's traits. Unless `whole`, there may be others: a trait that is not listed is not known to be missing.

    `index` names the chain's index that gave the traits or the link to them; empty where the token's contract did.
    `linked` means that this index gave only the link, so that any other index leads to the same document.
    """

    found: tuple[Trait, ...]
    whole: bool = True
    index: str = ""
    linked: bool = False


def of_metadata(document: object) -> TraitList:
    """Return the traits in a token's metadata document (`attributes`, else `traits`, else ERC-1155's `properties`).

    If a document that describes a token has none of these, the list is not whole: the document may be a placeholder.
    Raises NoMetadata.
    """
    if not isinstance(document, Mapping):
        raise NoMetadata("it is not an object")
    fields = cast("Mapping[str, object]", document)
    if not _TELLING & fields.keys():
        raise NoMetadata("it describes no token")
    for name in ("attributes", "traits"):
        if fields.get(name) is not None:
            return read(fields[name])
    if isinstance(fields.get("properties"), Mapping):
        # Files and creators are there too, so an entry that cannot be read may or may not be a trait.
        given = cast("Mapping[str, object]", fields["properties"])
        try:
            return TraitList(read(given).found, whole=False)
        except NoMetadata:
            if given.keys() - _NO_TRAITS:
                raise
            return TraitList((), whole=False)
    return TraitList((), whole=False)


def read(given: object) -> TraitList:
    """Return the traits in `[{trait_type, value, display_type?}]` or `{kind: value}`.

    Raises NoMetadata for anything else.
    """
    if isinstance(given, Mapping):
        pairs = [(kind, value, None) for kind, value in cast("Mapping[str, object]", given).items()]
        whole = True
    elif isinstance(given, list):
        items = cast("list[object]", given)
        objects = [cast("Mapping[str, object]", item) for item in items if isinstance(item, Mapping)]
        pairs = [(item.get("trait_type"), item.get("value"), item.get("display_type")) for item in objects]
        whole = len(objects) == len(items)
    else:
        raise NoMetadata("its attributes are not a list")
    found: list[Trait] = []
    for one in _traits(pairs):
        if one is None:
            whole = False
        else:
            found.append(one)
    if not found and not whole:
        raise NoMetadata("none of its attributes can be read")
    return TraitList(tuple(dict.fromkeys(found)), whole)


def _traits(pairs: Iterable[tuple[object, object, object]]) -> Iterator[Trait | None]:
    """Yield each trait, and None for one that cannot be read; after the limits, one None instead of all others."""
    length = 0
    for place, (kind, value, form) in enumerate(_single(pairs)):
        if place == MOST_TRAITS:
            yield None
            return
        if value is None:
            continue
        # An object as `display_type` cannot be looked up in a set.
        usable = _value(value, isinstance(form, str) and form in _NUMBERS)
        if usable is None:
            yield None
            continue
        trait = Trait(_line(kind, LONGEST_KIND), usable)
        length += len(trait.kind) + len(str(usable))
        if length > LONGEST_LIST:
            yield None
            return
        yield trait


def _single(pairs: Iterable[tuple[object, object, object]]) -> Iterator[tuple[str, object, object]]:
    """Yield each value on its own, with its type (empty for none) and its form."""
    for kind, value, form in pairs:
        if kind is not None and not isinstance(kind, str):
            yield "", _UNREADABLE, form
            continue
        inner: object = value
        if isinstance(value, Mapping):
            # ERC-1155's `{name, value, display_value}`.
            inner = cast("Mapping[str, object]", value).get("value", _UNREADABLE)
        several: list[object] = cast("list[object]", inner) if isinstance(inner, list) else [inner]
        for one in several:
            yield kind or "", one, form


def _value(given: object, number: bool) -> str | int | float | None:
    """Return a value as a text on one line or as a number; None for anything else."""
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int | float):
        return given if math.isfinite(given) else None
    if not isinstance(given, str):
        return None
    if number and len(given) <= LONGEST_NUMBER:
        try:
            read_as = int(given) if given.strip().lstrip("+-").isdecimal() else float(given)
        except ValueError:
            return _line(given, LONGEST_VALUE)
        return read_as if math.isfinite(read_as) else None
    return _line(given, LONGEST_VALUE)


def _line(text: str, longest: int) -> str:
    """Return a text on one line. It is cut first, because one type may be as long as the document, and be repeated."""
    return plain(text[: 4 * longest], longest)
