"""The audit log: one line per event, never changed afterwards except by erasure, and queued for webhooks at once."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from models import Event, GrantKey, now
from models.db.session import AsyncSession
from services.core import actors, request_ids
from services.core.event_kinds import EVENT_KINDS, Kind

BY_TOKEN = "byToken"
"""The key in a line's data for the name of the API token with which the actor's program acted."""


@dataclass(frozen=True, slots=True)
class EventView:
    """One line of the log as an admin reads it."""

    id: int
    at: datetime
    kind: str
    actor: str | None
    subject: str | None
    role_id: str | None
    rule_id: int | None
    batch: str | None
    data: dict[str, Any]
    request_id: str | None = None

    @classmethod
    def of(cls, row: Event) -> "EventView":
        """Return the view of a row."""
        return cls(
            row.id or 0, row.at, row.kind, row.actor, row.subject, row.role_id, row.rule_id,
            str(row.batch) if row.batch else None, row.data,
            row.request_id,
        )  # fmt: skip


def line(
    kind: Kind,
    *,
    server_id: int | None = None,
    actor: str | None = None,
    subject: str | None = None,
    role_id: str | None = None,
    rule_id: int | None = None,
    batch: UUID | None = None,
    data: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return one line in the form that `record_all` expects. Raises ValueError for an undeclared kind."""
    if kind not in EVENT_KINDS:
        raise ValueError(f"no kind of event is called {kind!r}; services/core/event_kinds declares them")
    token = actors.token_name() if actor is not None else None
    noted = {**(data or {}), **({BY_TOKEN: token} if token else {})}
    return {
        "at": now(), "kind": kind, "server_id": server_id, "actor": actor, "subject": subject, "role_id": role_id,
        "rule_id": rule_id, "batch": batch, "data": noted, "request_id": request_ids.current(),
    }  # fmt: skip


def role_line(
    kind: Kind, of: GrantKey, *, batch: UUID | None = None, data: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return one line about a role of a member."""
    return line(kind, server_id=of.server_id, subject=of.discord_id, role_id=of.role_id, batch=batch, data=data)


async def record(db: AsyncSession, entry: dict[str, Any]) -> None:
    """Write one line."""
    await record_all(db, [entry])


async def record_all(db: AsyncSession, entries: list[dict[str, Any]]) -> None:
    """Write many lines in one statement; the database counts them (see `models.counts`)."""
    if entries:
        await db.execute(_RECORD, {"rows": json.dumps(entries, default=str)})


# The transaction of an event also queues its delivery to the webhooks that ask for it. An undo that puts rules back is
# also reported as a change of them, because it writes no other line. A proved wallet is reported only to servers with
# whose admins the member shares wallets. The address itself is read when the delivery is sent, if the member still
# shares it then.
_RECORD = """
    WITH line AS (INSERT INTO event (at, kind, server_id, actor, subject, role_id, rule_id, batch, data, request_id)
    SELECT at, kind, server_id, actor, subject, role_id, rule_id, batch, data, request_id
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS e (
        at timestamptz, kind text, server_id integer, actor text, subject text, role_id text, rule_id integer,
        batch uuid, data jsonb, request_id text)
    RETURNING id, kind, server_id, subject, data)
    INSERT INTO webhook_delivery (uuid, state, attempts, created_at, next_at, server_id, event_id, event)
    SELECT gen_random_uuid(), 'waiting', 0, now(), now(), d.server_id, d.event_id, d.event FROM (
    SELECT w.server_id, l.id AS event_id,
           CASE WHEN l.kind LIKE 'rule.%' OR l.kind = 'batch.undone' THEN 'rule.changed' ELSE l.kind END AS event
    FROM line l JOIN webhook w ON w.server_id = l.server_id
    WHERE (l.kind IN ('role.given', 'role.taken', 'breaker.tripped') AND l.kind = ANY(w.events))
       OR ((l.kind IN ('rule.created', 'rule.changed', 'rule.paused', 'rule.resumed', 'rule.deleted')
            OR (l.kind = 'batch.undone' AND l.data ->> 'of' LIKE 'rule.%')) AND 'rule.changed' = ANY(w.events))
    UNION ALL
    SELECT w.server_id, l.id, l.kind
    FROM line l JOIN "user" u ON u.discord_id = l.subject
    JOIN member_choice c ON c.user_id = u.id AND c.use_wallets AND c.share_wallets
    JOIN member m ON m.server_id = c.server_id AND m.discord_id = l.subject AND m.left_at IS NULL
    JOIN server s ON s.id = c.server_id AND s.bot_left_at IS NULL
    JOIN webhook w ON w.server_id = c.server_id AND l.kind = ANY(w.events)
    WHERE l.kind = 'wallet.proved') d ORDER BY d.event_id
"""
