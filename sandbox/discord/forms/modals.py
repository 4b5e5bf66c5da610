"""Bodies of interaction answers that are not messages: modals and the choices of an autocomplete."""

from typing import Any

from sandbox.discord.forms import components
from sandbox.discord.forms.commands import LOCALES
from sandbox.discord.forms.schema import ListOf, MapOf, Number, Path, Schema, Shape, Text, Whole, read

INTEGER, NUMBER = 4, 10
_MODAL = Shape(
    {"custom_id": Text(100, 1, exact=True), "title": Text(45, 1), "components": components.OF_MODAL},
    ("custom_id", "title", "components"),
)


def _choices(value: Schema) -> Shape:
    names = MapOf(LOCALES, Text(100, 1))
    choice = Shape({"name": Text(100, 1), "name_localizations": names, "value": value}, ("name", "value"))
    return Shape({"choices": ListOf(choice, 25)})


_OF_TYPE = {INTEGER: _choices(Whole(exact=True)), NUMBER: _choices(Number())}
_OF_TEXT = _choices(Text(100, 1, exact=True))


def modal(data: Any, path: Path) -> dict[str, Any]:
    """Return a modal with its components. Raises 50035."""
    return read(_MODAL, data, path)


def choices(data: Any, option_type: int, path: Path) -> list[Any]:
    """Return the choices for an option of this type. Raises 50035."""
    return read(_OF_TYPE.get(option_type, _OF_TEXT), data, path).get("choices") or []
