"""A small language for request bodies: the rule for a field is written once, and all mistakes are reported together.

The messages and the tree of `errors` follow Discord's reference on error messages. Its inner codes are names in the
documentation and numbers in the OpenAPI description, which is followed here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from sandbox.base.body import GREATEST
from sandbox.discord.answers.errors import DiscordError
from sandbox.discord.world.snowflakes import iso

Form = dict[str, Any]
"""A body that is an object."""
Path = tuple[str | int, ...]
INVALID_FORM = 50035
BAD: Final = object()
"""The result of reading an invalid value; the problem has been noted by then."""
REQUIRED = "This field is required"
NO_LIST = "Only iterables may be used in a ListType"
NO_OBJECT = "Only dictionaries may be used in a DictType"
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_SNOWFLAKE = re.compile(r"0|[1-9]\d{0,19}")
_SAFE = GREATEST - 1


class Problems:
    """The problems of a body, by their place in it."""

    def __init__(self) -> None:
        self._tree: dict[str, Any] = {}
        self.count = 0

    def note(self, path: Path, message: str) -> object:
        """Remember a problem, and return BAD; those of one field keep the order in which they were found."""
        self.count += 1
        node = self._tree
        for part in path:
            node = node.setdefault(str(part), {})
        node.setdefault("_errors", []).append({"code": INVALID_FORM, "message": message})
        return BAD

    def refusal(self) -> DiscordError:
        """Return 50035 with all problems."""
        return DiscordError(400, INVALID_FORM, "Invalid Form Body", self._tree)

    def complain(self) -> None:
        """Raise the refusal, if there are any problems."""
        if self.count:
            raise self.refusal()


class Schema(Protocol):
    """The rule for a value. `read` returns the value as Discord keeps it, or BAD after noting why it is invalid."""

    def read(self, value: Any, path: Path, problems: Problems) -> Any: ...


def read(schema: Schema, value: Any, path: Path = ()) -> Any:
    """Return the value as Discord keeps it. Raises 50035 with every problem."""
    problems = Problems()
    kept = schema.read(value, path, problems)
    problems.complain()
    return kept


@dataclass(frozen=True)
class Text:
    """A text of limited length; surrounding blanks are removed first, unless `exact`."""

    highest: int
    lowest: int = 0
    pattern: re.Pattern[str] | None = None
    words: str = "String value did not match validation regex."
    exact: bool = False

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if not isinstance(value, str):
            return problems.note(path, f'Could not interpret "{value}" as string.')
        text = value if self.exact else value.strip()
        if self.lowest and not text:
            return problems.note(path, REQUIRED)
        if self.lowest > 0 and not self.lowest <= len(text) <= self.highest:
            return problems.note(path, f"Must be between {self.lowest} and {self.highest} in length.")
        if len(text) > self.highest:
            return problems.note(path, f"Must be {self.highest} or fewer in length.")
        if self.pattern is not None and not self.pattern.fullmatch(text):
            return problems.note(path, self.words)
        return text


@dataclass(frozen=True)
class Url:
    """A URL with one of these schemes."""

    highest: int = 2048
    schemes: tuple[str, ...] = ("http", "https", "attachment")

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        text = Text(self.highest, 1).read(value, path, problems)
        if text is BAD:
            return BAD
        try:
            parts = urlsplit(text)
        except ValueError:
            return problems.note(path, "Not a well formed URL.")
        if parts.scheme and parts.scheme not in self.schemes:
            schemes = ", ".join(repr(scheme) for scheme in self.schemes)
            return problems.note(path, f'Scheme "{parts.scheme}" is not supported. Scheme must be one of ({schemes}).')
        if not parts.scheme or not (parts.netloc or parts.path.strip("/")) or re.search(r"\s", text):
            return problems.note(path, "Not a well formed URL.")
        return text


@dataclass(frozen=True)
class Whole:
    """A whole number, which may be written as text unless it is `exact` (docs/facts.md#discord-api-description)."""

    lowest: int = -_SAFE
    highest: int = _SAFE
    exact: bool = False

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if not self.exact and isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return problems.note(path, f'Value "{value}" is not int.')
        if value < self.lowest:
            return problems.note(path, f"int value should be greater than or equal to {self.lowest}.")
        if value > self.highest:
            return problems.note(path, f"int value should be less than or equal to {self.highest}.")
        return value


@dataclass(frozen=True)
class Number:
    """Any number between plus and minus 2**53 (docs/facts.md#discord-commands)."""

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return problems.note(path, f'Value "{value}" is not float.')
        if not -GREATEST <= value <= GREATEST:
            return problems.note(path, f"float value should be less than or equal to {GREATEST}.")
        return value


@dataclass(frozen=True)
class Switch:
    """True or false."""

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if isinstance(value, bool):
            return value
        return problems.note(path, "Must be either true or false.")


@dataclass(frozen=True)
class Choice:
    """One of these values."""

    values: tuple[int | str, ...]

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if isinstance(value, int | str) and not isinstance(value, bool) and value in self.values:
            return value
        return problems.note(path, f"Value must be one of {{{', '.join(map(repr, self.values))}}}.")


@dataclass(frozen=True)
class Snowflake:
    """An id, as text or as a number of any size; kept as text."""

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return str(value)
        if isinstance(value, str) and _SNOWFLAKE.fullmatch(value):
            return value
        return problems.note(path, f'Value "{value}" is not snowflake.')


@dataclass(frozen=True)
class Moment:
    """A time in ISO 8601, kept as Discord writes it."""

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        try:
            return iso(datetime.fromisoformat(value))
        except (TypeError, ValueError, OverflowError):
            return problems.note(path, f"Could not parse {value}. Should be ISO8601.")


@dataclass(frozen=True)
class Either:
    """The first of these kinds that fits."""

    kinds: tuple[Schema, ...]

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        for kind in self.kinds:
            if (kept := kind.read(value, path, Problems())) is not BAD:
                return kept
        return self.kinds[-1].read(value, path, problems)


@dataclass(frozen=True)
class ListOf:
    """A list of one kind, of limited length."""

    kind: Schema
    highest: int
    lowest: int = 0
    unique: bool = False

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if not isinstance(value, list):
            return problems.note(path, NO_LIST)
        if self.lowest and not self.lowest <= len(value) <= self.highest:
            return problems.note(path, f"Must be between {self.lowest} and {self.highest} in length.")
        if len(value) > self.highest:
            return problems.note(path, f"Must be {self.highest} or fewer in length.")
        kept = [self.kind.read(each, (*path, at), problems) for at, each in enumerate(value)]
        if any(each is BAD for each in kept):
            return BAD
        if self.unique and len(set(map(str, kept))) < len(kept):
            return problems.note(path, "The list must contain unique elements.")
        return kept


@dataclass(frozen=True)
class MapOf:
    """Values of one kind under known keys."""

    keys: tuple[str, ...]
    kind: Schema

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if not isinstance(value, dict):
            return problems.note(path, NO_OBJECT)
        for key in value.keys() - set(self.keys):
            problems.note((*path, key), f"Value must be one of {{{', '.join(map(repr, self.keys))}}}.")
        kept = {key: self.kind.read(each, (*path, key), problems) for key, each in value.items() if key in self.keys}
        return BAD if len(kept) < len(value) or any(each is BAD for each in kept.values()) else kept


Rule = Callable[[dict[str, Any], Path, Problems], None]


@dataclass(frozen=True)
class Shape:
    """An object with these fields.

    Unknown fields are left out. Null counts as absent unless `nulls_tell`, which is for nulls that clear the present
    value. `rules` check an object whose own fields are all valid.
    """

    fields: Mapping[str, Schema]
    needed: tuple[str, ...] = ()
    rules: Sequence[Rule] = field(default_factory=tuple[Rule, ...])
    nulls_tell: bool = False

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if not isinstance(value, dict):
            return problems.note(path, NO_OBJECT)
        kept: dict[str, Any] = {}
        lacking = [name for name in self.needed if value.get(name) is None]
        for name in lacking:
            problems.note((*path, name), REQUIRED)
        for name, kind in self.fields.items():
            if (given := value.get(name)) is not None:
                kept[name] = kind.read(given, (*path, name), problems)
            elif name in value and self.nulls_tell:
                kept[name] = None
        if lacking or any(each is BAD for each in kept.values()):
            return BAD
        before = problems.count
        for rule in self.rules:
            rule(kept, path, problems)
        return kept if problems.count == before else BAD


@dataclass(frozen=True)
class ByType:
    """An object whose shape follows from its `type`."""

    kinds: Mapping[int, Schema]

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        if not isinstance(value, dict):
            return problems.note(path, NO_OBJECT)
        kind = value.get("type")
        if kind is None:
            return problems.note((*path, "type"), REQUIRED)
        if isinstance(kind, bool) or not isinstance(kind, int) or kind not in self.kinds:
            allowed = ", ".join(map(str, sorted(self.kinds)))
            return problems.note(path, f'Value of field "type" must be one of ({allowed},).')
        return self.kinds[kind].read(value, path, problems)
