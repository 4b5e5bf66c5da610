"""The counts of what happened before anybody counted, while everybody goes on writing"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # What was done so far is committed first: reading a long log must not keep the locks of the triggers' migration.
    with op.get_context().autocommit_block():
        op.execute("SELECT rollup_fill()")


def downgrade() -> None:
    pass
