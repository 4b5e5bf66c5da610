"""The append-only audit log."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Index, literal_column, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field

from models.db.row import Row
from models.db.types import document, moment


class Event(Row, table=True):
    """One event. It never changes afterwards, except that erasure replaces a person's id with a pseudonym."""

    __table_args__ = (  # pyright: ignore[reportUnannotatedClassAttribute]
        Index("ix_event_server_at", "server_id", "at"),
        Index("ix_event_server_line", "server_id", "id"),
        Index("ix_event_server_kind", "server_id", "kind", "id", postgresql_ops={"kind": "text_pattern_ops"}),
        Index("ix_event_server_role", "server_id", "role_id", "id", postgresql_where=text("role_id IS NOT NULL")),
        Index("ix_event_server_rule", "server_id", "rule_id", "id", postgresql_where=text("rule_id IS NOT NULL")),
        Index("ix_event_server_subject", "server_id", "subject", "id", postgresql_where=text("subject IS NOT NULL")),
        Index("ix_event_actor", "actor", "server_id", "id", postgresql_where=text("actor IS NOT NULL")),
        # The previous version uses this index while its successor migrates the database.
        Index("ix_event_proved", "at", "subject", postgresql_where=text("kind = 'wallet.proved'")),
        Index("ix_event_prover", "subject", "at", postgresql_where=text("kind = 'wallet.proved'")),
        Index(
            "ix_event_rule_ids", literal_column("(data -> 'ruleIds')", JSONB).label("rule_ids"), postgresql_using="gin",
            postgresql_ops={"rule_ids": "jsonb_path_ops"},
            postgresql_where=text("(data -> 'ruleIds') IS NOT NULL"),
        ),
    )  # fmt: skip

    id: int | None = Field(default=None, primary_key=True, sa_type=BigInteger)
    at: datetime = moment()
    kind: str
    """`rule.created`, `wallet.proved`, `role.given`, `role.taken`, `breaker.tripped` and so on."""
    server_id: int | None = Field(default=None, foreign_key="server.id", ondelete="CASCADE")
    actor: str | None = None
    """Discord id of the actor (or the pseudonym of a forgotten one); None for Holdfast itself."""
    subject: str | None = Field(default=None, index=True)
    """Discord id of the member concerned."""
    role_id: str | None = None
    rule_id: int | None = None
    batch: UUID | None = Field(default=None, index=True)
    data: dict[str, Any] = document()
    request_id: str | None = None
    """The request that caused it, as in the processes' logs; None for Holdfast itself."""
