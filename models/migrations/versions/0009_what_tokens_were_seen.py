"""How many fitting tokens wallets were seen to hold, and where to look for them"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tally",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("contract", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("amount", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("at_least", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chain", "contract", "address", "scope"),
    )
    op.create_table(
        "token_trail",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("contract", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("ids", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("searched", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chain", "contract", "address"),
    )


def downgrade() -> None:
    op.drop_table("token_trail")
    op.drop_table("tally")
