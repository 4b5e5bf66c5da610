"""Refusals by role and guild, the processes' shares of Discord's rate, and an index for the writer's question"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "role_refusal",
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("role_id", sa.String(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("server_id", "role_id"),
    )
    op.create_table(
        "guild_refusal",
        sa.Column("guild_id", sa.String(), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("rests", sa.Integer(), nullable=False),
        sa.Column("rests_until", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("guild_id"),
    )
    op.create_table(
        "rate_share",
        sa.Column("process", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("wanted", sa.Float(), nullable=False),
        sa.Column("share", sa.Float(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("process"),
    )
    op.create_index(
        "ix_grant_turns",
        "grant",
        [
            "server_id", "role_id", "state", sa.text("(gift_since IS NOT NULL OR cardinality(rule_ids) = 0)"),
            "next_at", "id",
        ],
        postgresql_where=sa.text("state IN ('giving', 'taking')"),
    )  # fmt: skip


def downgrade() -> None:
    op.drop_index("ix_grant_turns", table_name="grant")
    op.drop_table("rate_share")
    op.drop_table("guild_refusal")
    op.drop_table("role_refusal")
