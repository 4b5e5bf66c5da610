"""How many members Discord says that each server has"""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("server", sa.Column("member_count", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("server", "member_count")
