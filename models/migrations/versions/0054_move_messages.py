"""When the messages of a move are brought up to date"""

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("server_move", sa.Column("messages_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE server_move SET messages_at = until WHERE state = 'open'")
    op.create_index(
        "ix_server_move_messages", "server_move", ["messages_at"], postgresql_where=sa.text("messages_at IS NOT NULL")
    )


def downgrade() -> None:
    op.drop_column("server_move", "messages_at")
