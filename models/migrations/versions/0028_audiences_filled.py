"""The verified members of before, counted while everybody goes on writing, and an index that answers for the list"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_NEW = {
    "ix_event_prover": "event (subject, at) WHERE kind = 'wallet.proved'",
    # With the name itself the list is read from the index alone; without it PostgreSQL does not know that it could be.
    "ix_member_name": (
        "member (server_id, lower(name), discord_id) INCLUDE (name) WHERE left_at IS NULL AND NOT bot"
    ),
}  # fmt: skip
_REPLACED = {"ix_member_list": "member (server_id, lower(name), discord_id) WHERE left_at IS NULL AND NOT bot"}


def _build(made: dict[str, str], replaced: dict[str, str]) -> None:
    # Everybody goes on writing meanwhile. One that was not finished is there, but of no use: it is made again.
    limit = op.get_bind().execute(sa.text("SHOW lock_timeout")).scalar_one()
    op.execute("SET lock_timeout = 0")  # it waits for older transactions, and nobody waits for it
    for name, what in made.items():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {what}")
    for name in replaced:
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    op.execute(f"SET lock_timeout = '{limit}'")


def upgrade() -> None:
    with op.get_context().autocommit_block():
        _build(_NEW, _REPLACED)
        op.execute("SELECT verified_rebuild()")


def downgrade() -> None:
    with op.get_context().autocommit_block():
        _build(_REPLACED, _NEW)
