"""People who asked to be forgotten while they still have roles of ours"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "farewell",
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("pseudonym", sa.String(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("renamed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("discord_id"),
    )


def downgrade() -> None:
    op.drop_table("farewell")
