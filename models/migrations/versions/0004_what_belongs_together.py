"""What belongs together: batches of removals, roles that an admin lets stay, removals held back; and avatars"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("grant", sa.Column("batch", sa.Uuid(), nullable=True))
    op.add_column("grant", sa.Column("gift_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("grant", sa.Column("held_back_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("breaker", sa.Column("dismissed_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("breaker", sa.Column("dismissed_by", sa.String(), nullable=True))
    op.add_column("member", sa.Column("avatar", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("member", "avatar")
    op.drop_column("breaker", "dismissed_by")
    op.drop_column("breaker", "dismissed_at")
    op.drop_column("grant", "held_back_at")
    op.drop_column("grant", "gift_since")
    op.drop_column("grant", "batch")
