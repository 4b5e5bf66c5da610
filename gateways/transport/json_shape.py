"""Reads foreign JSON strictly: what is not there, or not of its type, is a confused provider and never a default."""

from collections.abc import Mapping
from typing import cast

from gateways.transport.errors import ProviderConfused


class Shape:
    """Reads one JSON object strictly: a missing or wrongly typed field is ProviderConfused."""

    def __init__(self, value: object, what: str, provider: str) -> None:
        if not isinstance(value, Mapping):
            raise ProviderConfused(provider, f"{what} is not an object")
        self._fields = cast("Mapping[str, object]", value)
        self._what = what
        self._provider = provider

    def _wrong(self, name: str) -> ProviderConfused:
        return ProviderConfused(self._provider, f"{self._what} has no usable {name}")

    def text(self, name: str) -> str:
        """A text."""
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise self._wrong(name)
        return value

    def id(self, name: str = "id") -> str:
        """A snowflake: decimal digits in a text (docs/facts.md#discord-requests)."""
        value = self.text(name)
        if not (value.isascii() and value.isdigit()):
            raise self._wrong(name)
        return value

    def text_or_none(self, name: str) -> str | None:
        """A text, null or absent."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name)
        return value

    def number(self, name: str) -> int:
        """An integer; Discord writes permissions as decimal texts, which count (docs/facts.md#discord-permissions)."""
        value = self._fields.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            return int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(name)
        return value

    def flag(self, name: str, default: bool | None = None) -> bool:
        """A boolean; absent is the default, if there is one."""
        value = self._fields.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name)
        return value

    def has(self, name: str) -> bool:
        """Whether the key is present at all, whatever its value."""
        return name in self._fields

    def names(self) -> tuple[str, ...]:
        """The keys that are there, in the order of the answer."""
        return tuple(self._fields)

    def inner(self, name: str) -> "Shape":
        """A nested object."""
        return Shape(self._fields.get(name), f"{self._what}'s {name}", self._provider)

    def items(self, name: str) -> list[object]:
        """A nested list."""
        return listed(self._fields.get(name), f"{self._what}'s {name}", self._provider)


def listed(value: object, what: str, provider: str) -> list[object]:
    """The value as a list, or ProviderConfused."""
    if not isinstance(value, list):
        raise ProviderConfused(provider, f"{what} is not a list")
    return cast("list[object]", value)
