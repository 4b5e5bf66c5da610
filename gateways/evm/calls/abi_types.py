"""The types of the contract ABI, and how their names are read."""

import re
from dataclasses import dataclass

from locales import _, number

MOST_TYPES = 40
DEEPEST = 8
LONGEST_ROW = 1_024
LARGEST_HEAD = 32_768
"""Bytes that the fixed part of a function's arguments or results may take."""
NUMBERS = frozenset({"uint", "int"})
_SIZED = re.compile(r"(uint|int|bytes)([0-9]{0,3})")


class SignatureRefused(ValueError):
    """The text is not a view function that can be called here; the message is a sentence for a person."""


@dataclass(frozen=True, slots=True)
class AbiType:
    """One type. `kind` is uint, int, address, bool, fixed (bytes1 to bytes32), bytes, string, list, row or tuple.

    `size` is the bits of a number, the bytes of a fixed, or the elements of a row (`uint256[3]`).
    """

    kind: str
    size: int = 0
    parts: tuple["AbiType", ...] = ()

    @property
    def name(self) -> str:
        """The type's canonical name, from which selectors are made."""
        if self.kind in NUMBERS:
            return f"{self.kind}{self.size}"
        if self.kind == "fixed":
            return f"bytes{self.size}"
        if self.kind == "list":
            return f"{self.parts[0].name}[]"
        if self.kind == "row":
            return f"{self.parts[0].name}[{self.size}]"
        return f"({','.join(part.name for part in self.parts)})" if self.kind == "tuple" else self.kind

    @property
    def dynamic(self) -> bool:
        """Whether the type is dynamic, so that its head is an offset to its content."""
        return self.kind in {"bytes", "string", "list"} or any(part.dynamic for part in self.parts)

    @property
    def head(self) -> int:
        """The bytes that it takes in the fixed part of the type that contains it."""
        if self.dynamic:
            return 32
        if self.kind == "row":
            return self.size * self.parts[0].head
        return sum(part.head for part in self.parts) if self.kind == "tuple" else 32

    @property
    def has_parts(self) -> bool:
        """Whether it has parts, so that a path has to lead further into it."""
        return self.kind in {"list", "row", "tuple"}


def elementary(name: str) -> AbiType:
    """Return the type without parts that has this name. Raises SignatureRefused if there is none."""
    if name in {"address", "bool", "string"}:
        return AbiType(name)
    sized = _SIZED.fullmatch(name)
    if sized is None:
        told = _("{name} is not a type of the ABI. Write {address} for a contract, and {number} for an enum.")
        raise SignatureRefused(told.format(name=name[:40], address="address", number="uint8"))
    kind, size = sized[1], int(sized[2] or 0)
    if kind == "bytes":
        if not sized[2]:
            return AbiType("bytes")
        if 1 <= size <= 32:
            return AbiType("fixed", size)
        told = _("{name} is not a type of the ABI: {least} to {most}, and {any}, are.")
        raise SignatureRefused(told.format(name=name, least="bytes1", most="bytes32", any="bytes"))
    size = size if sized[2] else 256
    if size % 8 or not 8 <= size <= 256:
        told = _("{name} is not a type of the ABI: a number has 8 to 256 bits, in steps of 8.")
        raise SignatureRefused(told.format(name=name))
    return AbiType(kind, size)


def array_of(item: AbiType, length: int | None) -> AbiType:
    """Return an array of this type, of `length` elements, or of any number of them. Raises SignatureRefused."""
    if length is None:
        return AbiType("list", 0, (item,))
    if not 1 <= length <= LONGEST_ROW:
        raise SignatureRefused(_("An array of fixed length has 1 to {most} elements.").format(most=number(LONGEST_ROW)))
    return AbiType("row", length, (item,))


def check_size(types: tuple[AbiType, ...], what: str) -> None:
    """Raise SignatureRefused where these types together are too many, too deep or too large."""
    # Translators: {what} is "arguments" or "results" of a function.
    too_many = _("The {what} have more than {most} types.")
    # Translators: {what} is "arguments" or "results" of a function.
    too_deep = _("The {what} are nested more than {most} levels deep.")
    # Translators: {what} is "arguments" or "results" of a function.
    too_large = _("The {what} take more than {most} bytes.")
    if sum(map(_count, types)) > MOST_TYPES:
        raise SignatureRefused(too_many.format(what=what, most=MOST_TYPES))
    if max(map(_depth, types), default=0) > DEEPEST:
        raise SignatureRefused(too_deep.format(what=what, most=DEEPEST))
    if sum(one.head for one in types) > LARGEST_HEAD:
        raise SignatureRefused(too_large.format(what=what, most=number(LARGEST_HEAD)))


def _count(one: AbiType) -> int:
    return 1 + sum(map(_count, one.parts))


def _depth(one: AbiType) -> int:
    return 1 + max(map(_depth, one.parts), default=0)
