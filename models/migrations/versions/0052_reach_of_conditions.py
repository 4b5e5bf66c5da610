"""Which conditions a day's numbers are of, and when a counted collection's tokens last moved"""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("reach_day", sa.Column("digest", sa.String(), nullable=False, server_default=""))
    op.add_column("census", sa.Column("moved_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("census", "moved_at")
    op.drop_column("reach_day", "digest")
