"""The language that a person chose for the screens"""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("user", sa.Column("language", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("user", "language")
