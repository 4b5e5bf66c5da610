"""The language of a server's panel and alerts"""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("server", sa.Column("language", sa.String(), nullable=False, server_default="en"))


def downgrade() -> None:
    op.drop_column("server", "language")
