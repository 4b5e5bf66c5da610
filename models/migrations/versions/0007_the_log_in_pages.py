"""The log of a server in pages, however long it is"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_event_server_line", "event", ["server_id", "id"])


def downgrade() -> None:
    op.drop_index("ix_event_server_line", table_name="event")
