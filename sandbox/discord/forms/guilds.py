"""Bodies of roles and members (docs/facts.md#discord-roles-and-members)."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox.discord.forms.schema import (
    BAD,
    ListOf,
    Moment,
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

LONGEST_TIMEOUT = timedelta(days=28)

_COLOR = Whole(0, 0xFFFFFF)
_COLORS = Shape({"primary_color": _COLOR, "secondary_color": _COLOR, "tertiary_color": _COLOR})
_ROLE: dict[str, Schema] = {
    "name": Text(100, 1),
    "permissions": Whole(0, 2**63),
    "color": _COLOR,
    "colors": _COLORS,
    "hoist": Switch(),
    "mentionable": Switch(),
}
_POSITIONS = ListOf(Shape({"id": Snowflake(), "position": Whole(0, 2**31 - 1)}, ("id",)), 1521)


class _Timeout:
    """The end of a member's time-out."""

    def read(self, value: Any, path: Path, problems: Problems) -> Any:
        end = Moment().read(value, path, problems)
        if end is not BAD and datetime.fromisoformat(end) > datetime.now(UTC) + LONGEST_TIMEOUT:
            return problems.note(path, "Invalid communication disabled timestamp")
        return end


_MEMBER = Shape(
    {
        "nick": Text(32),
        "roles": ListOf(Snowflake(), 1521),
        "mute": Switch(),
        "deaf": Switch(),
        "communication_disabled_until": _Timeout(),
    },
    nulls_tell=True,
)


def role(body: Any) -> dict[str, Any]:
    """Return the fields of a role. Raises 50035."""
    return read(Shape(_ROLE), body)


def positions(body: Any) -> list[dict[str, Any]]:
    """Return roles with their new positions. Raises 50035."""
    return read(_POSITIONS, body)


def member(body: Any) -> dict[str, Any]:
    """Return the fields of a member. Raises 50035."""
    return read(_MEMBER, body)
