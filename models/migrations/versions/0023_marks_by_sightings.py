"""Which marks of those who are due say no more than that a token was seen to move"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("due", sa.Column("seen", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("due", sa.Column("overtaken", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("due", "overtaken")
    op.drop_column("due", "seen")
