"""Role writes that Discord may carry out yet"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "unanswered",
        sa.Column("server_id", sa.Integer(), sa.ForeignKey("server.id", ondelete="CASCADE"), nullable=False),
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("role_id", sa.String(), nullable=False),
        sa.Column("giving", sa.Boolean(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("server_id", "discord_id", "role_id", "giving"),
    )


def downgrade() -> None:
    op.drop_table("unanswered")
