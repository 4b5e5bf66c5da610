"""Migrations of collections and coins to another contract, while rules count both"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "contract_migration",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("contract", sa.String(), nullable=False),
        sa.Column("new_chain", sa.String(), nullable=False),
        sa.Column("new_contract", sa.String(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("rules", postgresql.JSONB(), nullable=False),
        sa.Column("batch", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_contract_migration_open", "contract_migration", ["until"], postgresql_where=sa.text("state = 'open'")
    )
    op.create_index("ix_contract_migration_server", "contract_migration", ["server_id", "id"])


def downgrade() -> None:
    op.drop_table("contract_migration")
