"""One note for each transaction about what is watched, and notes about servers"""

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None

# A transaction's changes become visible together, so one row shows them all. Without this check each row of a large
# update read the rows that the ones before it had added and deleted. A savepoint belongs to its transaction, and takes
# its note with it when it is undone.
_THIS = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
_NOTED = f"""
    IF EXISTS (SELECT FROM watched_change WHERE what = TG_TABLE_NAME AND noted_in = {_THIS}) THEN
        RETURN NULL;
    END IF;
"""
_NOTE = """
CREATE OR REPLACE FUNCTION note_watched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_LEVEL = 'STATEMENT' THEN
        IF NOT EXISTS (SELECT FROM changed) THEN
            RETURN NULL;
        END IF;
    END IF;{noted}
    DELETE FROM watched_change WHERE id = ANY(ARRAY(
        SELECT id FROM watched_change WHERE what = TG_TABLE_NAME ORDER BY id DESC OFFSET 1 FOR UPDATE SKIP LOCKED));
    INSERT INTO watched_change (what) VALUES (TG_TABLE_NAME);
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    op.add_column("watched_change", sa.Column("noted_in", sa.BigInteger(), server_default=sa.text(_THIS)))
    op.execute(_NOTE.format(noted=_NOTED))
    for event, when in (
        ("INSERT", "NEW.bot_invited"),
        ("UPDATE OF bot_invited", "OLD.bot_invited IS DISTINCT FROM NEW.bot_invited"),
        ("DELETE", "OLD.bot_invited"),
    ):
        op.execute(
            f"CREATE TRIGGER watched_{event.split()[0].lower()} AFTER {event} ON server FOR EACH ROW WHEN ({when}) "
            "EXECUTE FUNCTION note_watched()"
        )


def downgrade() -> None:
    for event in ("insert", "delete", "update"):
        op.execute(f"DROP TRIGGER watched_{event} ON server")
    op.execute("DELETE FROM watched_change WHERE what = 'server'")
    op.execute(_NOTE.format(noted=""))
    op.drop_column("watched_change", "noted_in")
