"""Whether a token was delegated as an ERC-721's, as an ERC-1155's, or as both"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("delegation", sa.Column("single", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute("UPDATE delegation SET single = true WHERE token_id <> '' AND amount IS NULL")


def downgrade() -> None:
    op.drop_column("delegation", "single")
