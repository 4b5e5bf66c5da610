"""How old delegations were that the last read did not name"""

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ended_delegation",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("delegate", sa.String(), nullable=False),
        sa.Column("vault", sa.String(), nullable=False),
        sa.Column("contract", sa.String(), nullable=False),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chain", "delegate", "vault", "contract", "token_id"),
    )


def downgrade() -> None:
    op.drop_table("ended_delegation")
