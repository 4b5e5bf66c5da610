"""Bodies of channels and their overwrites (docs/facts.md#discord-channels)."""

from typing import Any

from sandbox.discord.forms.schema import (
    Choice,
    ListOf,
    Path,
    Problems,
    Schema,
    Shape,
    Snowflake,
    Switch,
    Text,
    Whole,
    read,
)

TYPES = (0, 2, 4, 5, 13, 14, 15)
CATEGORY = 4
# Only communities have announcement, stage and forum channels.
OF_COMMUNITIES = (5, 13, 15)
SLOWEST = 21_600


def _overwrite_rule(overwrite: dict[str, Any], path: Path, problems: Problems) -> None:
    if (overwrite.get("allow") or 0) & (overwrite.get("deny") or 0):
        problems.note(path, "A permission cannot be both allowed and denied")


_BITS = Whole(0, 2**63)
_OVERWRITE = Shape(
    {"id": Snowflake(), "type": Choice((0, 1, "0", "1")), "allow": _BITS, "deny": _BITS}, ("id",), (_overwrite_rule,)
)
_FIELDS: dict[str, Schema] = {
    "name": Text(100, 1),
    "type": Choice(TYPES),
    "topic": Text(1024),
    "nsfw": Switch(),
    "rate_limit_per_user": Whole(0, SLOWEST),
    "position": Whole(0, 2**31 - 1),
    "parent_id": Snowflake(),
    "bitrate": Whole(8_000, 384_000),
    "user_limit": Whole(0, 10_000),
    "permission_overwrites": ListOf(_OVERWRITE, 100),
}
_NEW, _CHANGED = Shape(_FIELDS, ("name",)), Shape(_FIELDS, nulls_tell=True)


def new_channel(body: Any) -> dict[str, Any]:
    """Return the fields of a new channel. Raises 50035."""
    return read(_NEW, body)


def changed_channel(body: Any) -> dict[str, Any]:
    """Return the fields of a channel that change. Raises 50035."""
    return read(_CHANGED, body)


def overwrite(body: Any) -> dict[str, Any]:
    """Return one overwrite. Raises 50035."""
    return read(_OVERWRITE, body)
