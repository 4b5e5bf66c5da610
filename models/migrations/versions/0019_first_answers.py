"""What a look saw that would take a role, until a later one confirms it"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("grant", sa.Column("first_no", postgresql.JSONB(), nullable=True))


def downgrade() -> None:
    op.drop_column("grant", "first_no")
