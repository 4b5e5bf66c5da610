"""Rules that count what vaults have delegated"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "delegation",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("delegate", sa.String(), nullable=False),
        sa.Column("vault", sa.String(), nullable=False),
        sa.Column("contract", sa.String(), nullable=False),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("amount", sa.Numeric(precision=78, scale=0), nullable=True),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chain", "delegate", "vault", "contract", "token_id"),
    )
    op.create_index("ix_delegation_vault", "delegation", ["vault"])
    op.create_table(
        "delegation_read",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("delegate", sa.String(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("endpoint", sa.Integer(), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("more", sa.Boolean(), nullable=False),
        sa.Column("fault", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("chain", "delegate"),
    )
    op.add_column("rule", sa.Column("delegated", sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    op.drop_column("rule", "delegated")
    op.drop_table("delegation_read")
    op.drop_table("delegation")
