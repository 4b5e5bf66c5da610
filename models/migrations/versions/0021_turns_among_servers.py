"""Servers take turns among those who are due"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("due", sa.Column("turn", sa.Integer(), nullable=False, server_default="0"))
    op.create_index("ix_due_turn", "due", [sa.text("priority DESC"), "turn", "due_at"])
    op.drop_index("ix_due_next", table_name="due")


def downgrade() -> None:
    op.create_index("ix_due_next", "due", [sa.text("priority DESC"), "due_at"])
    op.drop_index("ix_due_turn", table_name="due")
    op.drop_column("due", "turn")
