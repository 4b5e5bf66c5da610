"""Payout addresses that members choose for a server, and who downloaded them"""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("member_choice", sa.Column("payout_wallet_id", sa.Integer(), nullable=True))
    op.create_foreign_key(
        "member_choice_payout_wallet_id_fkey",
        "member_choice",
        "wallet",
        ["payout_wallet_id"],
        ["id"],
        ondelete="SET NULL",
    )
    op.create_index(
        "ix_member_choice_payout",
        "member_choice",
        ["payout_wallet_id"],
        postgresql_where=sa.text("payout_wallet_id IS NOT NULL"),
    )
    op.create_table(
        "payout_listing",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_payout_listing_user", "payout_listing", ["user_id", "server_id", "at"])
    op.create_index("ix_payout_listing_actor", "payout_listing", ["actor"])
    op.create_index("ix_payout_listing_server_id", "payout_listing", ["server_id"])


def downgrade() -> None:
    op.drop_table("payout_listing")
    op.drop_column("member_choice", "payout_wallet_id")
