"""Modals: their fields and the entered values, in both of Discord's layouts."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import nextcord

SHORT_TEXT, LABEL, TEXT_INPUT, STRING_SELECT = 1, 18, 4, 3
ADDRESS, METHOD, HASH = "address", "method", "hash"


class Form(nextcord.ui.Modal):
    """A modal with its parts in Discord's JSON: labels around inputs (docs/facts.md#discord-components).

    The library can write and read only the older layout, so `filled_in` reads the sent values.
    """

    def __init__(self, title: str, custom_id: str, parts: list[dict[str, Any]]) -> None:
        super().__init__(title, custom_id=custom_id, timeout=None, auto_defer=False)
        self._parts: list[dict[str, Any]] = parts
        # Mark it as finished from the start, so that the library does not wait for it.
        self.stop()

    def to_dict(self) -> dict[str, Any]:
        """Return the modal as JSON."""
        return {"title": self.title, "custom_id": self.custom_id, "components": self._parts}


def text_part(name: str, label: str, hint: str, placeholder: str, longest: int) -> dict[str, Any]:
    """Return a required field for one line of text."""
    return {
        "type": LABEL, "label": label, "description": hint,
        "component": {
            "type": TEXT_INPUT, "custom_id": name, "style": SHORT_TEXT, "placeholder": placeholder,
            "min_length": 1, "max_length": longest, "required": True,
        },
    }  # fmt: skip


def choice_part(name: str, label: str, hint: str, options: list[tuple[str, str, str]]) -> dict[str, Any]:
    """Return a choice among `(value, label, description)`, with the first one selected."""
    return {
        "type": LABEL, "label": label, "description": hint,
        "component": {
            "type": STRING_SELECT, "custom_id": name, "required": True,
            "options": [
                {"value": value, "label": text, "description": more, "default": at == 0}
                for at, (value, text, more) in enumerate(options)
            ],
        },
    }  # fmt: skip


def filled_in(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the entered values by the parts' custom ids; for a menu, its first value."""
    found: dict[str, str] = {}
    for part in _parts(data.get("components")):
        name = part.get("custom_id")
        values = part.get("values")
        value = part.get("value") if not isinstance(values, list) else next(iter(cast("list[Any]", values)), "")
        if isinstance(name, str) and isinstance(value, str):
            found[name] = value
    return found


def _parts(rows: object) -> Iterator[Mapping[str, Any]]:
    for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
        if isinstance(row, Mapping):
            part = cast("Mapping[str, Any]", row)
            if isinstance(part.get("component"), Mapping):
                yield part["component"]
            inner = cast("list[Any]", part.get("components") or [])
            yield from (cast("Mapping[str, Any]", one) for one in inner if isinstance(one, Mapping))
