"""What a server's panel says, where an admin changed it"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_COLUMNS = ("panel_title", "panel_text", "panel_button", "panel_color")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column("server", sa.Column(name, sa.String(), nullable=True))


def downgrade() -> None:
    for name in _COLUMNS:
        op.drop_column("server", name)
