"""The content of a message: writing a checked form into it, with components and embeds completed as Discord does."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from sandbox.discord.actions import talk
from sandbox.discord.forms import messages
from sandbox.discord.forms.components import CONTAINER, FILE, GALLERY, SELECTS, SEPARATOR, THUMBNAIL, all_of
from sandbox.discord.forms.messages import COMPONENTS_V2
from sandbox.discord.forms.schema import Form, Path
from sandbox.discord.world.entities import EPHEMERAL, Message
from sandbox.discord.world.protocols import Discord

SUPPRESS_EMBEDS = 4
SUPPRESS_NOTIFICATIONS = 1 << 12
SETTABLE_FLAGS = SUPPRESS_EMBEDS | EPHEMERAL | SUPPRESS_NOTIFICATIONS | COMPONENTS_V2


def write(discord: Discord, message: Message, form: Form, *, ephemeral_allowed: bool, path: Path = ()) -> None:
    """Write the form into the message. Raises 50035, or 50006 (empty message); `path` is the form's place."""
    numbers = count(1)
    read = messages.message(form, path, message.flags & COMPONENTS_V2)
    flags = (read.get("flags") or 0) & (SETTABLE_FLAGS if ephemeral_allowed else SETTABLE_FLAGS & ~EPHEMERAL)
    text, embeds, components = message.content, message.embeds, message.components
    if "content" in read:
        text = read["content"] or ""
    if "embeds" in read:
        embeds = [_shown_embed(embed) for embed in read["embeds"] or []]
    if "components" in read:
        components = [_shown(component, numbers, discord) for component in read["components"] or []]
    if not (text or embeds or components):
        raise messages.empty()
    if flags & COMPONENTS_V2 and (text or embeds):
        raise messages.legacy("content" if text else "embeds", path)
    message.content, message.embeds, message.components = text, embeds, components
    message.flags |= flags
    talk.call_out(discord, message, read.get("allowed_mentions"))


def _shown_embed(embed: dict[str, Any]) -> dict[str, Any]:
    shown = {**embed, "type": "rich"}
    shown["fields"] = [{"inline": False, **field} for field in embed.get("fields", [])]
    return {name: value for name, value in shown.items() if value not in ("", [])}


def _shown(component: dict[str, Any], numbers: Iterator[int], discord: Discord) -> dict[str, Any]:
    """Return a component with its number and Discord's defaults."""
    kind = component["type"]
    shown = {**component, "id": component.get("id") or next(numbers)}
    if kind == CONTAINER:
        shown = {"accent_color": None, "spoiler": False, **shown}
    if kind == SEPARATOR:
        shown = {"spacing": 1, "divider": True, **shown}
    if kind in SELECTS:
        shown = {"min_values": 1, "max_values": 1, "disabled": False, **shown}
    if kind == THUMBNAIL:
        shown |= _pictured(component, discord)
    if kind == GALLERY:
        shown["items"] = [_pictured(item, discord) for item in component["items"]]
    if kind == FILE:
        shown |= {"file": _media(component["file"], discord), "name": None, "size": None}
        shown.setdefault("spoiler", False)
    if "components" in component:
        shown["components"] = [_shown(each, numbers, discord) for each in component["components"]]
    if component.get("accessory"):
        shown["accessory"] = _shown(component["accessory"], numbers, discord)
    return shown


def _pictured(item: dict[str, Any], discord: Discord) -> dict[str, Any]:
    return {"description": None, "spoiler": False, **item, "media": _media(item["media"], discord)}


def _media(media: dict[str, Any], discord: Discord) -> dict[str, Any]:
    """Return a picture or file as Discord describes it; nobody fetches it here, so its size is unknown."""
    return {**media, "id": discord.world.ids.next(), "proxy_url": media["url"], "width": None, "height": None}


def find(components: list[dict[str, Any]], custom_id: str) -> dict[str, Any] | None:
    """Return the component with this custom id, however deeply it is nested."""
    return next((each for each, _ in all_of(components) if each.get("custom_id") == custom_id), None)
