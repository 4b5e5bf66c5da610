"""A guild's audit log: who gave and took roles, for a bot that may view it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from gateways.discord.calls import DiscordCalls
from gateways.discord.types import DISCORD
from gateways.transport.errors import ProviderConfused
from gateways.transport.json_shape import Shape

ROLES_OF_A_MEMBER = 25
"""The type of entries about given and taken roles (docs/facts.md#discord-audit-log)."""
A_PAGE = 100
_FIRST_MOMENT = 1_420_070_400_000
"""The start of 2015 in Unix milliseconds, from which Discord's ids count (docs/facts.md#discord-requests)."""


@dataclass(frozen=True, slots=True)
class RoleEntry:
    """One entry: who gave or took which roles of which member."""

    id: str
    at: datetime
    actor_id: str | None
    actor_name: str | None
    actor_bot: bool
    target_id: str
    added: frozenset[str]
    removed: frozenset[str]


class AuditLogCalls(DiscordCalls):
    """The calls that read audit logs."""

    async def role_entries(self, guild_id: str, before: str | None = None) -> list[RoleEntry]:
        """Return a page of entries about members' roles, the newest first; `before` is the last page's oldest id.

        GET /guilds/{guild}/audit-logs (docs/facts.md#discord-audit-log). Raises MissingPermissions without View Audit
        Log.
        """
        query = f"?action_type={ROLES_OF_A_MEMBER}&limit={A_PAGE}{f'&before={before}' if before else ''}"
        answer = Shape(
            await self._request("GET", "/guilds/{}/audit-logs", (guild_id,), query=query), "the log", DISCORD
        )
        people = {user.id(): user for user in (Shape(one, "a user", DISCORD) for one in answer.items("users"))}
        return [_entry(one, people) for one in answer.items("audit_log_entries")]


def _entry(value: object, people: Mapping[str, Shape]) -> RoleEntry:
    entry = Shape(value, "an entry", DISCORD)
    actor_id = entry.text_or_none("user_id")
    actor = people.get(actor_id or "")
    name = None if actor is None else actor.text_or_none("global_name") or actor.text("username")
    changes = [Shape(one, "a change", DISCORD) for one in (entry.items("changes") if entry.has("changes") else [])]
    return RoleEntry(
        id=entry.id(),
        at=_moment(entry.id()),
        actor_id=actor_id,
        actor_name=name,
        actor_bot=actor is not None and actor.flag("bot", default=False),
        target_id=entry.id("target_id"),
        added=_roles(changes, "$add"),
        removed=_roles(changes, "$remove"),
    )


def _moment(snowflake: str) -> datetime:
    try:
        return datetime.fromtimestamp(((int(snowflake) >> 22) + _FIRST_MOMENT) / 1000, UTC)
    except (OverflowError, ValueError, OSError) as fault:
        raise ProviderConfused(DISCORD, "an entry has no usable id") from fault


def _roles(changes: list[Shape], key: str) -> frozenset[str]:
    return frozenset(
        Shape(role, "a role", DISCORD).id()
        for change in changes
        if change.text("key") == key
        for role in change.items("new_value")
    )
