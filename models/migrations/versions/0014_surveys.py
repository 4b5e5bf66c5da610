"""What many wallets were found to hold in one reading, and an order of due members that needs no sorting"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "survey",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("contracts", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "surveyed",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("survey_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("chain", "address", "server_id"),
    )
    # A round writes every row of these once; with room on each page no index has to be touched for it.
    op.execute("ALTER TABLE surveyed SET (fillfactor = 50)")
    op.execute("ALTER TABLE due SET (fillfactor = 50)")
    op.execute("ALTER TABLE observation DROP CONSTRAINT observation_pkey")
    op.execute("ALTER TABLE observation ADD PRIMARY KEY (chain, address, contract)")
    op.drop_index("ix_due_next", table_name="due")
    op.create_index("ix_due_next", "due", [sa.text("priority DESC"), "due_at"])


def downgrade() -> None:
    op.drop_index("ix_due_next", table_name="due")
    op.create_index("ix_due_next", "due", ["priority", "due_at"])
    op.execute("ALTER TABLE observation DROP CONSTRAINT observation_pkey")
    op.execute("ALTER TABLE observation ADD PRIMARY KEY (chain, contract, address)")
    op.execute("ALTER TABLE due RESET (fillfactor)")
    op.drop_table("surveyed")
    op.drop_table("survey")
