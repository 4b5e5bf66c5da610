"""Whom we store: the roles whose holders are read, and who has used the bot"""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None

_WATCH = """
CREATE FUNCTION watch_role() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.deleted_at IS NULL THEN
        INSERT INTO role_watch (server_id, role_id) VALUES (NEW.server_id, NEW.role_id)
        ON CONFLICT (server_id, role_id) DO UPDATE SET at = now();
    END IF;
    RETURN NULL;
END $$
"""
_WATCH_MOVE = """
CREATE FUNCTION watch_roles_of_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO role_watch (server_id, role_id) SELECT DISTINCT NEW.server_id, r FROM unnest(NEW.roles) r ORDER BY 2
    ON CONFLICT (server_id, role_id) DO UPDATE SET at = now();
    RETURN NULL;
END $$
"""
_TRIGGERS = (
    "CREATE TRIGGER rule_watch_role AFTER INSERT OR UPDATE OF role_id, deleted_at ON rule "
    "FOR EACH ROW EXECUTE FUNCTION watch_role()",
    "CREATE TRIGGER move_watch_roles AFTER INSERT OR UPDATE OF roles ON server_move "
    "FOR EACH ROW EXECUTE FUNCTION watch_roles_of_move()",
)
# Until now every member was stored, so all who have these roles are.
_FILL = """
INSERT INTO role_watch (server_id, role_id, listed_at)
SELECT server_id, role_id, now() FROM rule WHERE deleted_at IS NULL
UNION SELECT server_id, unnest(roles), now() FROM server_move WHERE state = 'open'
ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    # First, because it commits. What follows is committed with the number of this migration, or is not there when it
    # is tried again: a later migration may have met a table in use, or somebody may have ended the process.
    with op.get_context().autocommit_block():
        limit = op.get_bind().execute(sa.text("SHOW lock_timeout")).scalar_one()
        op.execute("SET lock_timeout = 0")  # it waits for older transactions, and nobody waits for it
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_member_unread")
        op.execute("CREATE INDEX CONCURRENTLY ix_member_unread ON member (server_id) WHERE seen_at = to_timestamp(0)")
        op.execute(f"SET lock_timeout = '{limit}'")
    # Earlier versions committed all of this before they built the index, without the number of the migration.
    if not sa.inspect(op.get_bind()).has_table("role_watch"):
        _begin_to_watch()


def _begin_to_watch() -> None:
    op.create_table(
        "role_watch",
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("role_id", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("listed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("server_id", "role_id"),
    )
    op.create_index(
        "ix_role_watch_unlisted", "role_watch", ["server_id"], postgresql_where=sa.text("listed_at IS NULL")
    )
    op.add_column("member", sa.Column("met_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("server", sa.Column("list_wanted", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_index("ix_server_list_wanted", "server", ["id"], postgresql_where=sa.text("list_wanted"))
    for statement in (_WATCH, _WATCH_MOVE, *_TRIGGERS, _FILL):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP INDEX ix_member_unread")
    op.execute("DROP TRIGGER rule_watch_role ON rule")
    op.execute("DROP TRIGGER move_watch_roles ON server_move")
    op.execute("DROP FUNCTION watch_role()")
    op.execute("DROP FUNCTION watch_roles_of_move()")
    op.drop_index("ix_server_list_wanted", "server")
    op.drop_column("server", "list_wanted")
    op.drop_column("member", "met_at")
    op.drop_table("role_watch")
