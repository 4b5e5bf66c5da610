"""Wallets proved by a transaction: how far accounts are followed, what was seen, what is spent"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("challenge", sa.Column("screen_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "challenge",
        sa.Column("seen", postgresql.JSONB(astext_type=sa.Text()), nullable=False, server_default=sa.text("'{}'")),
    )
    op.add_column("challenge", sa.Column("note", sa.String(), nullable=False, server_default=""))
    op.create_table(
        "trail",
        sa.Column("challenge_id", sa.Integer(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("nonce", sa.BigInteger(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("first_block", sa.BigInteger(), nullable=False),
        sa.Column("contract", sa.Boolean(), nullable=False),
        sa.Column("scanned", sa.Integer(), nullable=False),
        sa.Column("lost", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["challenge_id"], ["challenge.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("challenge_id", "chain"),
    )
    op.create_table(
        "spent_transaction",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("spent_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )


def downgrade() -> None:
    op.drop_table("spent_transaction")
    op.drop_table("trail")
    for column in ("note", "seen", "screen_at"):
        op.drop_column("challenge", column)
