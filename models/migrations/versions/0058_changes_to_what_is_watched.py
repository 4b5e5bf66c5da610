"""Changes to what the followers watch"""

import sqlalchemy as sa
from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None

# One row for each statement that changed something. The rows are only there to differ from those that a follower saw,
# so each deletes older ones, except those that another transaction deletes: nobody waits for anybody.
_NOTE = """
CREATE FUNCTION note_watched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_LEVEL = 'STATEMENT' THEN
        IF NOT EXISTS (SELECT FROM changed) THEN
            RETURN NULL;
        END IF;
    END IF;
    DELETE FROM watched_change WHERE id = ANY(ARRAY(
        SELECT id FROM watched_change WHERE what = TG_TABLE_NAME ORDER BY id DESC OFFSET 1 FOR UPDATE SKIP LOCKED));
    INSERT INTO watched_change (what) VALUES (TG_TABLE_NAME);
    RETURN NULL;
END $$
"""
# What is compared of a row that was updated, by table.
_COMPARED = {
    "rule": "{0}.server_id, CAST({0}.expression AS text), {0}.delegated, {0}.deleted_at, {0}.pause_cause",
    "wallet": "{0}.user_id, {0}.family, {0}.address, {0}.chain",
    "delegation": "{0}.chain, {0}.delegate, {0}.vault",
}


def upgrade() -> None:
    op.create_table(
        "watched_change",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("what", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.execute(_NOTE)
    for table, compared in _COMPARED.items():
        for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD")):
            op.execute(
                f"CREATE TRIGGER watched_{event.lower()} AFTER {event} ON {table} REFERENCING {rows} TABLE AS changed "
                "FOR EACH STATEMENT EXECUTE FUNCTION note_watched()"
            )
        op.execute(
            f"CREATE TRIGGER watched_update AFTER UPDATE ON {table} FOR EACH ROW "
            f"WHEN (ROW({compared.format('OLD')}) IS DISTINCT FROM ROW({compared.format('NEW')})) "
            "EXECUTE FUNCTION note_watched()"
        )


def downgrade() -> None:
    for table in _COMPARED:
        for event in ("insert", "delete", "update"):
            op.execute(f"DROP TRIGGER watched_{event} ON {table}")
    op.execute("DROP FUNCTION note_watched()")
    op.drop_table("watched_change")
