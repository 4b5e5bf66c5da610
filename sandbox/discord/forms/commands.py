"""Bodies of application commands (docs/facts.md#discord-commands)."""

import re
from typing import Any

from sandbox.discord.forms.schema import (
    BAD,
    ByType,
    Choice,
    ListOf,
    MapOf,
    Number,
    Path,
    Problems,
    Rule,
    Schema,
    Shape,
    Switch,
    Text,
    Whole,
    read,
)

CHAT_INPUT, USER, MESSAGE, ENTRY_POINT = 1, 2, 3, 4
SUB_COMMAND, GROUP, STRING, INTEGER, CHANNEL, NUMBER = 1, 2, 3, 4, 7, 10
PLAIN = (5, 6, 8, 9, 11)
LONGEST = 8000
LOCALES = (
    "ar", "bg", "cs", "da", "de", "el", "en-GB", "en-US", "es-419", "es-ES", "fi", "fr", "he", "hi", "hr", "hu", "id",
    "it", "ja", "ko", "lt", "nl", "no", "pl", "pt-BR", "ro", "ru", "sv-SE", "th", "tr", "uk", "vi", "zh-CN", "zh-TW",
)  # fmt: skip
_INVALID = "Command name is invalid"
NOT_UNIQUE = "Application command names must be unique"


class _Name:
    """Lower-case letters, digits, marks, `-`, `_` and `'`: the name of something that people type."""

    _pattern = re.compile(r"[-_'\w\u0900-\u097f\u0e00-\u0e7f]{1,32}")

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        name = Text(32, 1, self._pattern, _INVALID, exact=True).read(value, path, problems)
        if name is not BAD and name != name.lower():
            return problems.note(path, _INVALID)
        return name


_NAME, _DESCRIPTION = _Name(), Text(100, 1)
_WORDS: dict[str, Schema] = {
    "name": _NAME,
    "name_localizations": MapOf(LOCALES, _NAME),
    "description": _DESCRIPTION,
    "description_localizations": MapOf(LOCALES, _DESCRIPTION),
}


def _list_rule(options: list[dict[str, Any]], path: Path, problems: Problems) -> None:
    """Check the options of one command together: their names, their order, and which types may be combined."""
    nesting = [option["type"] in (SUB_COMMAND, GROUP) for option in options]
    if any(nesting) and not all(nesting):
        words = "Sub-command and sub-command group option types are mutually exclusive to all other types"
        problems.note((*path, nesting.index(not nesting[0])), words)
    names = [option["name"] for option in options]
    optional_seen = False
    for at, option in enumerate(options):
        if option["name"] in names[:at]:
            problems.note((*path, at), "Option names must be unique")
        if option.get("required") and optional_seen:
            problems.note((*path, at), "Required options must be placed before non-required options")
        optional_seen = optional_seen or not option.get("required")


class _Options:
    """Up to 25 options, each valid and valid together."""

    def __init__(self, kinds: dict[int, Schema]) -> None:
        self._each = ListOf(ByType(kinds), 25)

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        kept = self._each.read(value, path, problems)
        if kept is not BAD:
            _list_rule(kept, path, problems)
        return kept


def _choices_rule(option: dict[str, Any], path: Path, problems: Problems) -> None:
    choices = option.get("choices") or []
    if choices and option.get("autocomplete"):
        problems.note((*path, "autocomplete"), "Autocomplete cannot be enabled where choices are present")
    names = [choice["name"] for choice in choices]
    for at, name in enumerate(names):
        if name in names[:at]:
            problems.note((*path, "choices", at), "Choice names must be unique")


def _bounds_rule(low: str, high: str) -> Rule:
    def rule(option: dict[str, Any], path: Path, problems: Problems) -> None:
        lowest, highest = option.get(low), option.get(high)
        if lowest is not None and highest is not None and lowest > highest:
            problems.note((*path, low), f"{low} must be less than or equal to {high}")

    return rule


def _option(kind: int, more: dict[str, Schema], *rules: Rule) -> Shape:
    fields = {"type": Choice((kind,)), **_WORDS, "required": Switch(), **more}
    return Shape(fields, ("type", "name", "description"), rules)


def _typed(kind: int, value: Schema, low: str, high: str, bounds: tuple[Schema, Schema]) -> Shape:
    """Return the shape of an option whose values may be listed as choices."""
    choice = Shape(
        {"name": Text(100, 1), "name_localizations": MapOf(LOCALES, Text(100, 1)), "value": value}, ("name", "value")
    )
    more = {"choices": ListOf(choice, 25), "autocomplete": Switch(), low: bounds[0], high: bounds[1]}
    return _option(kind, more, _choices_rule, _bounds_rule(low, high))


_CHANNEL_TYPES = Choice((0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16))
_VALUES: dict[int, Schema] = {
    STRING: _typed(STRING, Text(100, exact=True), "min_length", "max_length", (Whole(0, 6000), Whole(1, 6000))),
    INTEGER: _typed(INTEGER, Whole(exact=True), "min_value", "max_value", (Whole(), Whole())),
    NUMBER: _typed(NUMBER, Number(), "min_value", "max_value", (Number(), Number())),
    CHANNEL: _option(CHANNEL, {"channel_types": ListOf(_CHANNEL_TYPES, 13, unique=True)}),
    **{kind: _option(kind, {}) for kind in PLAIN},
}
_SUB_COMMAND = _option(SUB_COMMAND, {"options": _Options(_VALUES)})
_GROUP = _option(GROUP, {"options": _Options({SUB_COMMAND: _SUB_COMMAND})})


def _size(part: dict[str, Any]) -> int:
    """Count the characters of a command's names, descriptions and values; of a localized text the longest counts."""
    total = len(str(part.get("value") or ""))
    for name in ("name", "description"):
        texts = [part.get(name) or "", *(part.get(f"{name}_localizations") or {}).values()]
        total += max(len(text) for text in texts)
    return total + sum(_size(each) for name in ("options", "choices") for each in part.get(name) or [])


def _size_rule(command: dict[str, Any], path: Path, problems: Problems) -> None:
    if _size(command) > LONGEST:
        problems.note(path, f"Command exceeds maximum size ({LONGEST})")


def _menu_rule(command: dict[str, Any], path: Path, problems: Problems) -> None:
    if command.get("description"):
        problems.note((*path, "description"), "Context menu commands cannot have description")
    if command.get("options"):
        problems.note((*path, "options"), "Context menu commands cannot have options")


_COMMON: dict[str, Schema] = {
    **_WORDS,
    "default_member_permissions": Whole(0, 2**54 - 1),
    "dm_permission": Switch(),
    "default_permission": Switch(),
    "contexts": ListOf(Choice((0, 1, 2)), 3, 1, unique=True),
    "integration_types": ListOf(Choice((0, 1)), 2, 1, unique=True),
    "nsfw": Switch(),
    "options": _Options({SUB_COMMAND: _SUB_COMMAND, GROUP: _GROUP, **_VALUES}),
}
_MENU_WORDS: dict[str, Schema] = {
    "name": Text(32, 1),
    "name_localizations": MapOf(LOCALES, Text(32, 1)),
    "description": Text(100),
    "description_localizations": MapOf(LOCALES, Text(100)),
}
_CHAT = Shape({"type": Choice((CHAT_INPUT,)), **_COMMON}, ("name", "description"), (_size_rule,))
_OF_TYPE = {
    CHAT_INPUT: _CHAT,
    **{
        kind: Shape({"type": Choice((kind,)), **_COMMON, **_MENU_WORDS}, ("name",), (_menu_rule,))
        for kind in (USER, MESSAGE)
    },
}


def command(body: Any, path: Path = ()) -> dict[str, Any]:
    """Return a command's fields. Raises 50035."""
    if isinstance(body, dict) and body.get("type") is None:
        body = {**body, "type": CHAT_INPUT}
    return read(ByType(_OF_TYPE), body, path)


def names_twice(names: list[tuple[int, str]]) -> Problems:
    """Return the problems of a list of commands, by their types and names: no two may share both."""
    problems = Problems()
    for at, name in enumerate(names):
        if name in names[:at]:
            problems.note((at, "name"), NOT_UNIQUE)
    return problems
