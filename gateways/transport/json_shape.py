"""Strict reading of providers' JSON: a missing or wrongly typed field raises ProviderConfused."""

from collections.abc import Mapping
from typing import cast

from gateways.transport.errors import ProviderConfused

MOST_DIGITS = 78
"""Digits of the largest number of 256 bits. Of a text with more than 4,300, Python makes no number."""


class Shape:
    """A strict reader of one JSON object: a missing or wrongly typed field raises ProviderConfused."""

    def __init__(self, value: object, what: str, provider: str) -> None:
        if not isinstance(value, Mapping):
            raise ProviderConfused(provider, f"{what} is not an object")
        self._fields = cast("Mapping[str, object]", value)
        self._what = what
        self._provider = provider

    def _wrong(self, name: str) -> ProviderConfused:
        return ProviderConfused(self._provider, f"{self._what} has no usable {name}")

    def text(self, name: str) -> str:
        """Return the string in a field."""
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise self._wrong(name)
        return value

    def id(self, name: str = "id") -> str:
        """Return a snowflake: a string of decimal digits (docs/facts.md#discord-requests)."""
        value = self.text(name)
        if not (value.isascii() and value.isdigit()):
            raise self._wrong(name)
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return the string in a field; None when the field is null or absent."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name)
        return value

    def number(self, name: str) -> int:
        """Return an integer, also from a string of digits, as Discord writes permissions.

        See docs/facts.md#discord-permissions.
        """
        value = self._fields.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS:
            return int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(name)
        return value

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a boolean; for an absent field the default, if there is one."""
        value = self._fields.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name)
        return value

    def has(self, name: str) -> bool:
        """Return whether the key is present, whatever its value."""
        return name in self._fields

    def names(self) -> tuple[str, ...]:
        """Return the keys of the object, in the order of the answer."""
        return tuple(self._fields)

    def inner(self, name: str) -> "Shape":
        """Return a nested object."""
        return Shape(self._fields.get(name), f"{self._what}'s {name}", self._provider)

    def items(self, name: str) -> list[object]:
        """Return a nested list."""
        return listed(self._fields.get(name), f"{self._what}'s {name}", self._provider)


def listed(value: object, what: str, provider: str) -> list[object]:
    """Return the value as a list; raise ProviderConfused for anything else."""
    if not isinstance(value, list):
        raise ProviderConfused(provider, f"{what} is not a list")
    return cast("list[object]", value)
