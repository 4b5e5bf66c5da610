"""What the checklist of a new server needs to know, and whether it is hidden"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("server", sa.Column("bot_too_low", sa.Boolean(), nullable=True))
    op.add_column("server", sa.Column("steps_hidden", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("server", "steps_hidden")
    op.drop_column("server", "bot_too_low")
