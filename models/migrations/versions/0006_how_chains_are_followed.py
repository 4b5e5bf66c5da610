"""How far chains are followed, and when wallets were last seen in a transfer"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("cursor", sa.Column("head", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("cursor", sa.Column("fault", sa.String(), nullable=True))
    op.create_table(
        "sighting",
        sa.Column("chain", sa.String(), primary_key=True),
        sa.Column("address", sa.String(), primary_key=True),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("sighting")
    op.drop_column("cursor", "fault")
    op.drop_column("cursor", "head")
