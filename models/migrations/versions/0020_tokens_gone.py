"""Tokens that the chain says are not a wallet's any more, and since which block"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "token_trail", sa.Column("gone", postgresql.JSONB(astext_type=sa.Text()), nullable=False, server_default="{}")
    )


def downgrade() -> None:
    op.drop_column("token_trail", "gone")
