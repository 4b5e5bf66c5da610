"""Counters over all processes, and which request a change came from"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "counter",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "label", "outcome"),
    )
    for table in ("due", "grant", "event"):
        op.add_column(table, sa.Column("request_id", sa.String(), nullable=True))


def downgrade() -> None:
    for table in ("event", "grant", "due"):
        op.drop_column(table, "request_id")
    op.drop_table("counter")
