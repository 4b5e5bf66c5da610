"""The audit log: who did what to a guild, and the reason given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from sandbox.discord.world.entities import AuditEntry
from sandbox.discord.world.world import World


@dataclass(frozen=True)
class By:
    """The person or bot that does something, and the reason they gave."""

    actor_id: str
    reason: str | None = None


def said_reason(header: str | None) -> str | None:
    """Return the text of an X-Audit-Log-Reason header."""
    return unquote(header) if header else None


def note(world: World, guild_id: str, by: By, action: str, target: str, changes: Sequence[dict[str, Any]] = ()) -> None:
    """Record something that was done; `changes` are in Discord's own form."""
    world.save(AuditEntry(world.ids.next(), guild_id, by.actor_id, action, target, by.reason, list(changes)))
