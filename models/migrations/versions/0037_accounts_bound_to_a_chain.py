"""Contract accounts count on the chain on which they were proved

An address may be one person's contract account on one chain and another person's on the next, so it is unique with its
chain. No statement of any version names the constraint that goes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
UNUSED_SINCE = "0036"


def upgrade() -> None:
    op.add_column("wallet", sa.Column("chain", sa.String(), server_default="", nullable=False))
    op.create_unique_constraint("wallet_family_address_chain_key", "wallet", ["family", "address", "chain"])
    op.drop_constraint("wallet_family_address_key", "wallet")


def downgrade() -> None:
    op.create_unique_constraint("wallet_family_address_key", "wallet", ["family", "address"])
    op.drop_constraint("wallet_family_address_chain_key", "wallet")
    op.drop_column("wallet", "chain")
