"""Indexes by which screens find what they show in a long log and a large server"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_INDEXES = {
    "ix_event_server_kind": "event (server_id, kind text_pattern_ops, id)",
    "ix_event_server_role": "event (server_id, role_id, id) WHERE role_id IS NOT NULL",
    "ix_event_server_rule": "event (server_id, rule_id, id) WHERE rule_id IS NOT NULL",
    "ix_event_server_subject": "event (server_id, subject, id) WHERE subject IS NOT NULL",
    "ix_event_actor": "event (actor, server_id, id) WHERE actor IS NOT NULL",
    "ix_event_proved": "event (at, subject) WHERE kind = 'wallet.proved'",
    "ix_event_rule_ids": (
        "event USING gin ((data -> 'ruleIds') jsonb_path_ops) WHERE (data -> 'ruleIds') IS NOT NULL"
    ),
    "ix_member_list": "member (server_id, lower(name), discord_id) WHERE left_at IS NULL AND NOT bot",
}  # fmt: skip


def upgrade() -> None:
    # Everybody goes on writing meanwhile. One that was not finished is there, but of no use: it is made again.
    with op.get_context().autocommit_block():
        limit = op.get_bind().execute(sa.text("SHOW lock_timeout")).scalar_one()
        op.execute("SET lock_timeout = 0")  # it waits for older transactions, and nobody waits for it
        for name, what in _INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {what}")
        op.execute(f"SET lock_timeout = '{limit}'")


def downgrade() -> None:
    for name in _INDEXES:
        op.execute(f"DROP INDEX {name}")
