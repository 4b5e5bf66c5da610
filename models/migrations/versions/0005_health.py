"""How providers answer, why rules paused, verification channels and alerts.

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "provider_state",
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ok_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("block", sa.BigInteger(), nullable=True),
        sa.Column("block_time", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("provider"),
    )
    op.create_table(
        "alert",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("mend", sa.String(), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_told_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_error", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_alert_server_id"), "alert", ["server_id"], unique=False)
    op.create_index(
        "ix_alert_open", "alert", ["server_id", "key"], unique=True, postgresql_where=sa.text("ended_at IS NULL")
    )
    op.add_column("server", sa.Column("bot_permissions", sa.BigInteger(), nullable=True))
    op.add_column("server", sa.Column("verify_channel_id", sa.String(), nullable=True))
    op.add_column("server", sa.Column("panel_message_id", sa.String(), nullable=True))
    op.add_column("server", sa.Column("log_channel_id", sa.String(), nullable=True))
    op.add_column("rule", sa.Column("pause_cause", sa.String(), nullable=True))
    op.add_column("rule", sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("due", sa.Column("reason", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("due", "reason")
    op.drop_column("rule", "paused_at")
    op.drop_column("rule", "pause_cause")
    op.drop_column("server", "log_channel_id")
    op.drop_column("server", "panel_message_id")
    op.drop_column("server", "verify_channel_id")
    op.drop_column("server", "bot_permissions")
    op.drop_index("ix_alert_open", table_name="alert", postgresql_where=sa.text("ended_at IS NULL"))
    op.drop_index(op.f("ix_alert_server_id"), table_name="alert")
    op.drop_table("alert")
    op.drop_table("provider_state")
