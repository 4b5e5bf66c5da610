"""REST: a guild's audit log."""

from typing import Any

from sandbox.discord.rest.call import Call, Endpoint
from sandbox.discord.world import permissions, shapes
from sandbox.discord.world.entities import AuditEntry

# First words of an entry → Discord's number for it (facts: AuditLogActionTypes of the OpenAPI description).
_TYPES = {
    "created the channel": 10, "changed the channel": 11, "deleted the channel": 12,
    "kicked": 20, "removed the bot": 20, "gave the role": 25, "took the role": 25, "added the bot": 28,
    "created the role": 30, "changed the role": 31, "moved roles": 31, "deleted the role": 32, "changed": 24,
}  # fmt: skip
_OTHERS = (
    "integrations", "webhooks", "guild_scheduled_events", "threads", "application_commands", "auto_moderation_rules",
)  # fmt: skip


async def get_log(call: Call) -> dict[str, Any]:
    """Answer GET /guilds/{guild}/audit-logs, newest first, or oldest first with `after`; needs View Audit Log."""
    guild = call.guild()
    call.need(guild, permissions.VIEW_AUDIT_LOG)
    limit, kind = call.number("limit", 50, 1, 100), call.number("action_type", 0, 0, 1000)
    before, after = call.cursor("before"), call.cursor("after")
    actor, target = call.cursor("user_id"), call.cursor("target_id")
    found = [
        entry
        for entry in call.discord.world.audit.get(guild.id, {}).values()
        if (before is None or int(entry.id) < before)
        and (after is None or int(entry.id) > after)
        and actor in (None, int(entry.actor_id))
        and target in (None, int(entry.target))
        and kind in (0, _type(entry))
    ]
    found.sort(key=lambda entry: int(entry.id), reverse=after is None)
    ids = dict.fromkeys(id_ for entry in found[:limit] for id_ in (entry.actor_id, entry.target))
    users = call.discord.world.users
    return {
        "audit_log_entries": [_shape(entry) for entry in found[:limit]],
        "users": [shapes.user(users[id_]) for id_ in ids if id_ in users],
        **{name: [] for name in _OTHERS},
    }


def _type(entry: AuditEntry) -> int:
    return next(number for words, number in _TYPES.items() if entry.action.startswith(words))


def _shape(entry: AuditEntry) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "id": entry.id,
        "action_type": _type(entry),
        "user_id": entry.actor_id,
        "target_id": entry.target,
        "changes": entry.changes,
    }
    return {**shape, "reason": entry.reason} if entry.reason else shape


ENDPOINTS = (Endpoint("GET", "/guilds/{guild_id}/audit-logs", get_log),)
