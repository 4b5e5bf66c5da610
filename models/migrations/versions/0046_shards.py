"""Shards of the bot: who runs them, where their sessions are, and what a process needs to resume them"""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "shard",
        sa.Column("shards", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(), nullable=True),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.Column("url", sa.String(), nullable=True),
        sa.Column("intents", sa.BigInteger(), nullable=True),
        sa.Column("bot", sa.String(), nullable=True),
        sa.Column("application_id", sa.String(), nullable=True),
        sa.Column("unavailable", sa.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("shards", "id"),
    )
    op.create_table(
        "bot_process",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("part", sa.String(), nullable=False),
        sa.Column("shards", sa.Integer(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("down", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "guild_picture",
        sa.Column("guild_id", sa.String(), nullable=False),
        sa.Column("data", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("guild_id"),
    )
    op.create_table(
        "interaction_claim",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_interaction_claim_at", "interaction_claim", ["at"])


def downgrade() -> None:
    for table in ("interaction_claim", "guild_picture", "bot_process", "shard"):
        op.drop_table(table)
