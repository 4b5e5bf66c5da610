"""Bodies of messages and embeds (docs/facts.md#discord-api-description, docs/facts.md#discord-messages)."""

from typing import Any

from sandbox.discord.answers.errors import DiscordError
from sandbox.discord.forms import components
from sandbox.discord.forms.schema import (
    Choice,
    ListOf,
    Moment,
    Path,
    Problems,
    Schema,
    Shape,
    Snowflake,
    Switch,
    Text,
    Url,
    Whole,
    read,
)

COMPONENTS_V2 = 1 << 15
# All message flags in Discord's table; which of them an application may set is decided elsewhere.
_FLAGS = sum(1 << bit for bit in (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15))
MOST_IN_EMBEDS = 6000
_NO_LEGACY = "The '{}' field cannot be used when using MessageFlags.IS_COMPONENTS_V2"
_LEGACY = ("content", "embeds", "poll", "sticker_ids")


class _Flags:
    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        flags = Whole(0).read(value, path, problems)
        if isinstance(flags, int) and flags & ~_FLAGS:
            problems.note(path, f'Value "{value}" is not a valid set of flags.')
        return flags


def _embed_rule(embed: dict[str, Any], path: Path, problems: Problems) -> None:
    shown = ("title", "description", "fields", "author", "footer", "image", "thumbnail", "url", "video", "provider")
    if not any(embed.get(name) for name in shown):
        problems.note((*path, "description"), "This field is required")


_PIXELS = Whole(0, 2**32 - 1)
_PICTURE = Shape({"url": Url(), "width": _PIXELS, "height": _PIXELS, "description": Text(4096)}, ("url",))
_FIELD = Shape({"name": Text(256, 1), "value": Text(1024, 1), "inline": Switch()}, ("name", "value"))
_EMBED = Shape(
    {
        "type": Text(100),
        "title": Text(256),
        "description": Text(4096),
        "url": Url(schemes=("http", "https")),
        "timestamp": Moment(),
        "color": Whole(0, 0xFFFFFF),
        "footer": Shape({"text": Text(2048, 1), "icon_url": Url()}, ("text",)),
        "image": _PICTURE,
        "thumbnail": _PICTURE,
        "author": Shape({"name": Text(256, 1), "url": Url(schemes=("http", "https")), "icon_url": Url()}, ("name",)),
        "fields": ListOf(_FIELD, 25),
    },
    rules=(_embed_rule,),
)


def _length(embed: dict[str, Any]) -> int:
    footer, author = embed.get("footer") or {}, embed.get("author") or {}
    fields = [text for each in embed.get("fields") or [] for text in (each["name"], each["value"])]
    texts = [embed.get("title"), embed.get("description"), footer.get("text"), author.get("name"), *fields]
    return sum(len(text or "") for text in texts)


def _mentions_rule(allowed: dict[str, Any], path: Path, problems: Problems) -> None:
    for kind in ("users", "roles"):
        if kind in (allowed.get("parse") or []) and allowed.get(kind):
            words = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
            problems.note(path, words)


_MENTIONS = Shape(
    {
        "parse": ListOf(Choice(("users", "roles", "everyone")), 3, unique=True),
        "users": ListOf(Snowflake(), 100, unique=True),
        "roles": ListOf(Snowflake(), 100, unique=True),
        "replied_user": Switch(),
    },
    rules=(_mentions_rule,),
)

_REFERENCE = Shape(
    {
        "type": Choice((0,)),
        "message_id": Snowflake(),
        "channel_id": Snowflake(),
        "guild_id": Snowflake(),
        "fail_if_not_exists": Switch(),
    },
    ("message_id",),
)


def _whole_rule(message: dict[str, Any], path: Path, problems: Problems) -> None:
    if sum(map(_length, message.get("embeds") or [])) > MOST_IN_EMBEDS:
        problems.note((*path, "embeds"), f"Embed size exceeds maximum size of {MOST_IN_EMBEDS}")
    if (message.get("flags") or 0) & COMPONENTS_V2:
        for name in _LEGACY:
            if message.get(name):
                problems.note((*path, name), _NO_LEGACY.format(name))


def _message(parts: Schema) -> Shape:
    return Shape(
        {
            "content": Text(2000),
            "embeds": ListOf(_EMBED, 10),
            "components": parts,
            "allowed_mentions": _MENTIONS,
            "message_reference": _REFERENCE,
            "flags": _Flags(),
            "nonce": components.NONCE,
            "enforce_nonce": Switch(),
            "tts": Switch(),
            "sticker_ids": ListOf(Snowflake(), 3),
        },
        rules=(_whole_rule,),
        nulls_tell=True,
    )


_FIRST, _SECOND = _message(components.OF_MESSAGE), _message(components.OF_SECOND_VERSION)


def message(body: Any, path: Path = (), flags: int = 0) -> dict[str, Any]:
    """Return the fields of a message as Discord keeps them; `flags` are those that it already has. Raises 50035."""
    given = Whole(0).read(body.get("flags"), path, Problems()) if isinstance(body, dict) else None
    if isinstance(given, int):
        flags |= given
    return read(_SECOND if flags & COMPONENTS_V2 else _FIRST, body, path)


def legacy(name: str, path: Path) -> DiscordError:
    """Return the error for a message with content or embeds, which components of version 2 do not allow."""
    problems = Problems()
    problems.note((*path, name), _NO_LEGACY.format(name))
    return problems.refusal()


def empty() -> DiscordError:
    """Return the error for an empty message."""
    return DiscordError(400, 50006, "Cannot send an empty message")
