"""The audit log: one line per event, never changed afterwards except by erasure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from models import Event, now
from models.db.session import AsyncSession
from services.core import request_ids
from services.core.event_kinds import EVENT_KINDS, Kind


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
    return {
        "at": now(), "kind": kind, "server_id": server_id, "actor": actor, "subject": subject, "role_id": role_id,
        "rule_id": rule_id, "batch": batch, "data": dict(data or {}), "request_id": request_ids.current(),
    }  # fmt: skip


async def record(db: AsyncSession, entry: dict[str, Any]) -> None:
    """Write one line."""
    await record_all(db, [entry])


async def record_all(db: AsyncSession, entries: list[dict[str, Any]]) -> None:
    """Write many lines in one statement; the database counts them (see `models.rollup`)."""
    if entries:
        await db.execute(text(_RECORD), {"rows": json.dumps(entries, default=str)})


_RECORD = """
    INSERT INTO event (at, kind, server_id, actor, subject, role_id, rule_id, batch, data, request_id)
    SELECT at, kind, server_id, actor, subject, role_id, rule_id, batch, data, request_id
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS e (
        at timestamptz, kind text, server_id integer, actor text, subject text, role_id text, rule_id integer,
        batch uuid, data jsonb, request_id text)
"""
