"""Marketplaces' limits, which all processes share"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "market_limit",
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("reads", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("base", sa.Float(), nullable=False),
        sa.Column("remaining", sa.Float(), nullable=False),
        sa.Column("resets_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kept", postgresql.JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("provider", "reads"),
    )


def downgrade() -> None:
    op.drop_table("market_limit")
