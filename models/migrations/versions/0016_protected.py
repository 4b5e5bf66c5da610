"""Members and roles that an admin protects"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("protected_members", "protected_roles"):
        op.add_column("server", sa.Column(name, sa.ARRAY(sa.Text()), nullable=False, server_default="{}"))


def downgrade() -> None:
    for name in ("protected_members", "protected_roles"):
        op.drop_column("server", name)
