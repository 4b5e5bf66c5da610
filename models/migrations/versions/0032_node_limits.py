"""What nodes were found to give, for processes that start later"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "node_limit",
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("log_blocks", sa.Integer(), nullable=True),
        sa.Column("logs_need_address", sa.Boolean(), nullable=True),
        sa.Column("batch", sa.Integer(), nullable=True),
        sa.Column("state_override", sa.Boolean(), nullable=True),
        sa.Column("states", sa.Integer(), nullable=True),
        sa.Column("finalized", sa.Boolean(), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("node"),
    )


def downgrade() -> None:
    op.drop_table("node_limit")
