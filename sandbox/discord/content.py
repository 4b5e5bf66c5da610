"""What a message may say: length limits, embeds and components, checked and completed as Discord does.

Limits: facts/external components and message resources of Discord's documentation.
"""

from itertools import count
from typing import Any

from sandbox.discord.entities import EPHEMERAL, Message
from sandbox.discord.errors import DiscordError, form_error
from sandbox.discord.fields import Form, given_number, given_text

ACTION_ROW, BUTTON, STRING_SELECT, TEXT_INPUT, SEPARATOR, CONTAINER, LABEL = 1, 2, 3, 4, 14, 17, 18
SELECTS = (3, 5, 6, 7, 8)
LINK = 5
SUPPRESS_EMBEDS = 4
COMPONENTS_V2 = 1 << 15
SETTABLE_FLAGS = SUPPRESS_EMBEDS | EPHEMERAL | COMPONENTS_V2
_EMBED_LENGTHS = {"title": 256, "description": 4096}


def write(message: Message, form: Form, ephemeral_allowed: bool) -> None:
    """Put what the form says into the message. Raises 50035 or 50006 (nothing to say)."""
    flags = given_number(form, "flags") or 0
    message.flags |= flags & (SETTABLE_FLAGS if ephemeral_allowed else SETTABLE_FLAGS & ~EPHEMERAL)
    if "content" in form:
        message.content = given_text(form, "content", 2000) or ""
    if "embeds" in form:
        message.embeds = _embeds(form["embeds"])
    if "components" in form:
        message.components = completed(form["components"], bool(message.flags & COMPONENTS_V2))
    if message.flags & COMPONENTS_V2 and (message.content or message.embeds):
        text = "The 'content' and 'embeds' fields cannot be used when using MessageFlags.IS_COMPONENTS_V2"
        raise form_error("content", text)
    if not (message.content or message.embeds or message.components):
        raise DiscordError(400, 50006, "Cannot send an empty message")


def _embeds(value: Any) -> list[dict[str, Any]]:
    embeds = value or []
    if not isinstance(embeds, list) or not all(isinstance(embed, dict) for embed in embeds):
        raise form_error("embeds", "Only iterables may be used in a ListType")
    if len(embeds) > 10:
        raise form_error("embeds", "Must be 10 or fewer in length.")
    total = 0
    for at, embed in enumerate(embeds):
        for name, highest in _EMBED_LENGTHS.items():
            total += len(given_text(embed, name, highest) or "")
        fields = embed.get("fields") or []
        if len(fields) > 25:
            raise form_error(f"embeds.{at}.fields", "Must be 25 or fewer in length.")
        for field in fields:
            total += len(given_text(field, "name", 256, 1) or "") + len(given_text(field, "value", 1024, 1) or "")
        total += len(given_text(embed.get("footer") or {}, "text", 2048) or "")
        total += len(given_text(embed.get("author") or {}, "name", 256) or "")
    if total > 6000:
        raise form_error("embeds", "Embed size exceeds maximum size of 6000")
    return [_shown_embed(embed) for embed in embeds]


def _shown_embed(embed: dict[str, Any]) -> dict[str, Any]:
    shown = {**embed, "type": "rich"}
    shown["fields"] = [{"inline": False, **field} for field in embed.get("fields") or []]
    return {name: value for name, value in shown.items() if value is not None and value != []}


def completed(value: Any, second_version: bool = False) -> list[dict[str, Any]]:
    """Components with their numbers. Raises 50035 for what Discord would not show."""
    rows = value or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise form_error("components", "Only iterables may be used in a ListType")
    if len(rows) > (40 if second_version else 5):
        raise form_error("components", "Must be between 1 and 5 in length.")
    if not second_version and any(row.get("type") != ACTION_ROW for row in rows):
        raise form_error("components.0.type", 'Value of field "type" must be one of (1,).')
    numbers, seen = count(1), set[str]()
    return [_component(row, f"components.{at}", numbers, seen) for at, row in enumerate(rows)]


def _component(component: dict[str, Any], path: str, numbers: "count[int]", seen: set[str]) -> dict[str, Any]:
    kind = component.get("type")
    shown = {name: value for name, value in component.items() if value is not None}
    shown["id"] = component.get("id") or next(numbers)
    if kind == CONTAINER:
        shown = {"accent_color": None, "spoiler": False, **shown}
    if kind == SEPARATOR:
        shown = {"spacing": 1, "divider": True, **shown}
    if kind == BUTTON:
        _check_button(component, path)
    if kind in SELECTS:
        given_text(component, "placeholder", 150)
        shown = {"min_values": 1, "max_values": 1, "disabled": False, **shown}
        if kind == STRING_SELECT and not 1 <= len(component.get("options") or []) <= 25:
            raise form_error(f"{path}.options", "Must be between 1 and 25 in length.")
    if custom_id := given_text(component, "custom_id", 100, 1):
        if custom_id in seen:
            message = "Component custom id cannot be duplicated"
            raise form_error(path, message)
        seen.add(custom_id)
    if "components" in component:
        inner = component["components"] or []
        if kind == ACTION_ROW and not 1 <= len(inner) <= 5:
            raise form_error(f"{path}.components", "Must be between 1 and 5 in length.")
        shown["components"] = [
            _component(each, f"{path}.components.{at}", numbers, seen) for at, each in enumerate(inner)
        ]
    for single in ("component", "accessory"):
        if isinstance(component.get(single), dict):
            shown[single] = _component(component[single], f"{path}.{single}", numbers, seen)
    return shown


def _check_button(component: dict[str, Any], path: str) -> None:
    given_text(component, "label", 80)
    name = "url" if component.get("style") == LINK else "custom_id"
    if component.get("style") != 6 and not component.get(name):
        raise form_error(f"{path}.{name}", "This field is required")


def find(components: list[dict[str, Any]], custom_id: str) -> dict[str, Any] | None:
    """The component with this custom id, however deep it sits."""
    for component in components:
        if component.get("custom_id") == custom_id:
            return component
        singles = [component[name] for name in ("component", "accessory") if name in component]
        inner = [*component.get("components", []), *singles]
        if found := find(inner, custom_id):
            return found
    return None
