"""Components of messages and modals (docs/facts.md#discord-components)."""

from collections.abc import Iterator
from typing import Any

from sandbox.discord.forms.schema import (
    ByType,
    Choice,
    Either,
    ListOf,
    Path,
    Problems,
    Rule,
    Schema,
    Shape,
    Snowflake,
    Switch,
    Text,
    Url,
    Whole,
)

ACTION_ROW, BUTTON, STRING_SELECT, TEXT_INPUT = 1, 2, 3, 4
SECTION, TEXT_DISPLAY, THUMBNAIL, GALLERY, FILE, SEPARATOR, CONTAINER, LABEL = 9, 10, 11, 12, 13, 14, 17, 18
FILE_UPLOAD, RADIO_GROUP, CHECKBOX_GROUP, CHECKBOX = 19, 21, 22, 23
SELECTS = {3: "string", 5: "user", 6: "role", 7: "mentionable", 8: "channel"}
LINK, PREMIUM = 5, 6
MOST_COMPONENTS, MOST_TEXT = 40, 4000

_CUSTOM_ID = Text(100, 1, exact=True)
_NUMBER = Whole(0, 2**31 - 1)
_COLOR = Whole(0, 0xFFFFFF)
_CHANNEL_TYPES = Choice((0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16))
_EMOJI = Shape({"id": Snowflake(), "name": Text(32), "animated": Switch()}, ("name",))
_MEDIA = Shape({"url": Url()}, ("url",))


def _of(kind: int, fields: dict[str, Schema], needed: tuple[str, ...] = (), *rules: Rule) -> Shape:
    return Shape({"type": Choice((kind,)), "id": _NUMBER, **fields}, ("type", *needed), rules)


def _button_rule(button: dict[str, Any], path: Path, problems: Problems) -> None:
    """Check a button.

    A link needs a URL, a premium button a SKU id, and any other button a custom id. All but premium buttons need a
    label or an emoji.
    """
    style = button["style"]
    wanted = {LINK: "url", PREMIUM: "sku_id"}.get(style, "custom_id")
    if not button.get(wanted):
        words = {"url": "A url is required", "sku_id": "A sku id is required", "custom_id": "A custom id is required"}
        problems.note((*path, wanted), words[wanted])
    for other in {"url", "sku_id", "custom_id"} - {wanted}:
        if button.get(other):
            problems.note((*path, other), "A custom id and url cannot both be specified")
    has_words = bool(button.get("label") or button.get("emoji"))
    if has_words is (style == PREMIUM):
        words = "A premium button has no label and no emoji" if has_words else "A button must have a label or an emoji"
        problems.note(path, words)


def _select_rule(select: dict[str, Any], path: Path, problems: Problems) -> None:
    """Check that there are as many options as may be chosen, and that no more are chosen from the start."""
    lowest, highest = _or(select.get("min_values"), 1), _or(select.get("max_values"), 1)
    if lowest > highest:
        problems.note((*path, "min_values"), "min_values must be less than or equal to max_values")
    options = select.get("options")
    chosen = len(select.get("default_values") or [])
    if options is not None:
        if highest > len(options):
            problems.note((*path, "max_values"), f"int value should be less than or equal to {len(options)}.")
        chosen = sum(1 for option in options if option.get("default"))
        _unique([option["value"] for option in options], (*path, "options"), problems)
    if chosen > highest:
        problems.note(path, f"At most {highest} options may be selected from the start")


def _needed_rule(given: dict[str, Any], path: Path, problems: Problems) -> None:
    """Check that a choice that must be made in a modal does not ask for nothing."""
    if given.get("required", True) and given.get("min_values") == 0:
        problems.note((*path, "min_values"), "int value should be greater than or equal to 1.")


def _unique(values: list[str], path: Path, problems: Problems) -> None:
    for at, value in enumerate(values):
        if value in values[:at]:
            problems.note((*path, at, "value"), "The specified option value is already used")


def _range_rule(low: str, high: str, highest: int) -> Rule:
    def rule(given: dict[str, Any], path: Path, problems: Problems) -> None:
        if _or(given.get(low), 0) > _or(given.get(high), highest):
            problems.note((*path, low), f"{low} must be less than or equal to {high}")

    return rule


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


_OPTION = Shape(
    {
        "label": Text(100, 1),
        "value": Text(100, 1, exact=True),
        "description": Text(100),
        "default": Switch(),
        "emoji": _EMOJI,
    },
    ("label", "value"),
)
_BUTTON = _of(
    BUTTON,
    {
        "style": Choice((1, 2, 3, 4, 5, 6)),
        "custom_id": _CUSTOM_ID,
        "label": Text(80),
        "disabled": Switch(),
        "url": Url(512, ("http", "https", "discord")),
        "sku_id": Snowflake(),
        "emoji": _EMOJI,
    },
    ("style",),
    _button_rule,
)


def _select(kind: int, *, in_modal: bool) -> Shape:
    fields: dict[str, Schema] = {
        "custom_id": _CUSTOM_ID,
        "placeholder": Text(150),
        "min_values": Whole(0, 25),
        "max_values": Whole(1, 25),
        "required": Switch(),
        "disabled": Choice(()) if in_modal else Switch(),
    }
    rules = (_select_rule, _needed_rule) if in_modal else (_select_rule,)
    if kind == STRING_SELECT:
        return _of(kind, {**fields, "options": ListOf(_OPTION, 25, 1)}, ("custom_id", "options"), *rules)
    names = ("user", "role") if SELECTS[kind] == "mentionable" else (SELECTS[kind],)
    chosen = Shape({"id": Snowflake(), "type": Choice(names)}, ("id", "type"))
    fields["default_values"] = ListOf(chosen, 25)
    if SELECTS[kind] == "channel":
        fields["channel_types"] = ListOf(_CHANNEL_TYPES, 25, unique=True)
    return _of(kind, fields, ("custom_id",), *rules)


def _row_rule(row: dict[str, Any], path: Path, problems: Problems) -> None:
    """Check that a row has only buttons, or one component of another type."""
    if len(row["components"]) > 1 and any(each["type"] != BUTTON for each in row["components"]):
        problems.note((*path, "components", 1), "The specified component exceeds the maximum width")


_ROW_PARTS = ByType({BUTTON: _BUTTON, **{kind: _select(kind, in_modal=False) for kind in SELECTS}})
_ROW = _of(ACTION_ROW, {"components": ListOf(_ROW_PARTS, 5, 1)}, ("components",), _row_rule)
_TEXT = _of(TEXT_DISPLAY, {"content": Text(MOST_TEXT, 1)}, ("content",))
_THUMBNAIL = _of(THUMBNAIL, {"media": _MEDIA, "description": Text(1024, 1), "spoiler": Switch()}, ("media",))
_SECTION = _of(
    SECTION,
    {
        "components": ListOf(ByType({TEXT_DISPLAY: _TEXT}), 3, 1),
        "accessory": ByType({BUTTON: _BUTTON, THUMBNAIL: _THUMBNAIL}),
    },
    ("components", "accessory"),
)
_PICTURE = Shape({"media": _MEDIA, "description": Text(1024, 1), "spoiler": Switch()}, ("media",))
_INSIDE = {
    ACTION_ROW: _ROW,
    SECTION: _SECTION,
    TEXT_DISPLAY: _TEXT,
    GALLERY: _of(GALLERY, {"items": ListOf(_PICTURE, 10, 1)}, ("items",)),
    FILE: _of(FILE, {"file": Shape({"url": Url(schemes=("attachment",))}, ("url",)), "spoiler": Switch()}, ("file",)),
    SEPARATOR: _of(SEPARATOR, {"spacing": Choice((1, 2)), "divider": Switch()}),
}
_CONTAINER = _of(
    CONTAINER,
    {"components": ListOf(ByType(_INSIDE), MOST_COMPONENTS, 1), "accent_color": _COLOR, "spoiler": Switch()},
    ("components",),
)
_FIRST_VERSION = ListOf(ByType({ACTION_ROW: _ROW}), 5)
_SECOND_VERSION = ListOf(ByType({**_INSIDE, CONTAINER: _CONTAINER}), MOST_COMPONENTS)

_OLD_INPUT = {
    "custom_id": _CUSTOM_ID,
    "style": Choice((1, 2)),
    "label": Text(45, 1),
    "value": Text(4000),
    "placeholder": Text(100),
    "required": Switch(),
    "min_length": Whole(0, 4000),
    "max_length": Whole(1, 4000),
}
_LENGTHS, _VALUES = _range_rule("min_length", "max_length", 4000), _range_rule("min_values", "max_values", 10)
_INPUT = _of(TEXT_INPUT, dict(_OLD_INPUT), ("custom_id", "style"), _LENGTHS)
_LABELLED_INPUT = _of(TEXT_INPUT, dict(_OLD_INPUT), ("custom_id", "style", "label"), _LENGTHS)
_MANY: dict[str, Schema] = {
    "custom_id": _CUSTOM_ID, "required": Switch(), "min_values": Whole(0, 10), "max_values": Whole(1, 10),
}  # fmt: skip


def _options_rule(group: dict[str, Any], path: Path, problems: Problems) -> None:
    _unique([option["value"] for option in group["options"]], (*path, "options"), problems)


_IN_LABEL = ByType(
    {
        TEXT_INPUT: _INPUT,
        **{kind: _select(kind, in_modal=True) for kind in SELECTS},
        FILE_UPLOAD: _of(FILE_UPLOAD, _MANY, ("custom_id",), _VALUES, _needed_rule),
        RADIO_GROUP: _of(
            RADIO_GROUP,
            {"custom_id": _CUSTOM_ID, "required": Switch(), "options": ListOf(_OPTION, 10, 2)},
            ("custom_id", "options"),
            _options_rule,
        ),
        CHECKBOX_GROUP: _of(
            CHECKBOX_GROUP,
            {**_MANY, "options": ListOf(_OPTION, 10, 1)},
            ("custom_id", "options"),
            _options_rule,
            _VALUES,
            _needed_rule,
        ),
        CHECKBOX: _of(CHECKBOX, {"custom_id": _CUSTOM_ID, "default": Switch()}, ("custom_id",)),
    }
)
_LABEL = _of(LABEL, {"label": Text(45, 1), "description": Text(100, 1), "component": _IN_LABEL}, ("label", "component"))
_OLD_ROW = _of(
    ACTION_ROW, {"components": ListOf(ByType({TEXT_INPUT: _LABELLED_INPUT}), 5, 1)}, ("components",), _row_rule
)


def all_of(components: Any, path: Path = ()) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield every component with its path, however deeply it is nested."""
    for at, component in enumerate(components or []):
        here = (*path, at)
        yield component, here
        yield from all_of(component.get("components"), (*here, "components"))
        for single in ("component", "accessory"):
            if component.get(single):
                yield from ((each, (*here, single, *deeper[1:])) for each, deeper in all_of([component[single]]))


def _together(components: list[dict[str, Any]], path: Path, problems: Problems) -> None:
    """Check all components of one message or modal together."""
    seen: dict[str, set[Any]] = {"custom_id": set(), "id": set()}
    words = {"custom_id": "Component custom id cannot be duplicated", "id": "Component id cannot be duplicated"}
    number, length = 0, 0
    for component, where in all_of(components, path):
        number += 1
        length += len(component.get("content") or "")
        for name, values in seen.items():
            value = component.get(name)
            if value and value in values:
                problems.note((*where, name), words[name])
            values.add(value)
    if number > MOST_COMPONENTS:
        problems.note(path, f"The total number of components cannot exceed {MOST_COMPONENTS}")
    if length > MOST_TEXT:
        problems.note(path, f"Component displayable text size exceeds maximum size of {MOST_TEXT}")


class _Together:
    """A list of components, each valid and valid together."""

    def __init__(self, each: Schema) -> None:
        self._each = each

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        before = problems.count
        kept = self._each.read(value, path, problems)
        if problems.count == before:
            _together(kept, path, problems)
        return kept


OF_MESSAGE, OF_SECOND_VERSION = _Together(_FIRST_VERSION), _Together(_SECOND_VERSION)
OF_MODAL = _Together(ListOf(ByType({ACTION_ROW: _OLD_ROW, TEXT_DISPLAY: _TEXT, LABEL: _LABEL}), 5, 1))
NONCE = Either((Whole(-(2**63), 2**63 - 1), Text(25, exact=True)))
