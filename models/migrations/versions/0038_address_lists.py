"""Lists of addresses that conditions of rules name"""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "address_list",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("server_id", "digest"),
    )
    op.create_table(
        "address_list_entry",
        sa.Column("list_id", sa.Integer(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["list_id"], ["address_list.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("list_id", "address"),
    )
    op.create_index("ix_address_list_entry_address", "address_list_entry", ["address"])


def downgrade() -> None:
    op.drop_table("address_list_entry")
    op.drop_table("address_list")
