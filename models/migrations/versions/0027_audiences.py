"""Counts of verified members: the tables, and the triggers that note whom to count again"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

# Stable and not volatile, so that both see what the statement sees that calls them: who is taken from `verified_stale`
# must be read as of that moment.
_VERIFIED_IN = """
CREATE FUNCTION verified_in(who text) RETURNS integer[] STABLE LANGUAGE plpgsql AS $$ BEGIN
    RETURN ARRAY(
        SELECT m.server_id FROM "user" u JOIN member m ON m.discord_id = u.discord_id
        LEFT JOIN member_choice c ON c.user_id = u.id AND c.server_id = m.server_id
        WHERE u.discord_id = who AND m.left_at IS NULL AND NOT m.bot AND COALESCE(c.use_wallets, true)
        AND EXISTS (SELECT 1 FROM wallet w WHERE w.user_id = u.id) ORDER BY m.server_id);
END $$
"""
_PROVED_ON = """
CREATE FUNCTION proved_on(who text) RETURNS date[] STABLE LANGUAGE plpgsql AS $$ BEGIN
    RETURN ARRAY(
        SELECT CAST(e.at AT TIME ZONE 'UTC' AS date) FROM event e WHERE e.kind = 'wallet.proved' AND e.subject = who
        ORDER BY 1);
END $$
"""
# Everybody who writes members, wallets and choices notes it, also a version that knows nothing of counts. A note is a
# row of its own, so nobody waits for anybody, and to count somebody once too often changes nothing.
_NOTE_PEOPLE = """
CREATE FUNCTION verified_note_people() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO verified_stale (discord_id) SELECT discord_id FROM changed;
    RETURN NULL;
END $$
"""
_NOTE_PERSON = """
CREATE FUNCTION verified_note_person() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO verified_stale (discord_id) SELECT DISTINCT unnest(ARRAY[OLD.discord_id, NEW.discord_id]);
    RETURN NULL;
END $$
"""
_NOTE_USERS = """
CREATE FUNCTION verified_note_users() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO verified_stale (discord_id)
    SELECT u.discord_id FROM "user" u WHERE u.id IN (SELECT user_id FROM changed);
    RETURN NULL;
END $$
"""
_NOTE_USER = """
CREATE FUNCTION verified_note_user() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO verified_stale (discord_id)
    SELECT u.discord_id FROM "user" u WHERE u.id IN (OLD.user_id, NEW.user_id);
    RETURN NULL;
END $$
"""
_NOTE_PROOF = """
CREATE FUNCTION verified_note_proof() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO verified_stale (discord_id) VALUES (NEW.subject);
    ELSE
        INSERT INTO verified_stale (discord_id) VALUES (OLD.subject);
    END IF;
    RETURN NULL;
END $$
"""
# One statement reads and counts, so it sees of each transaction its notes with its changes, or neither of them.
_FOLD = """
CREATE FUNCTION verified_fold() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE folded bigint; BEGIN
    IF NOT pg_try_advisory_xact_lock(7164002) THEN RETURN 0; END IF;
    WITH gone AS (
        DELETE FROM verified_stale RETURNING discord_id
    ), read AS MATERIALIZED (
        SELECT discord_id, verified_in(discord_id) AS servers FROM (SELECT DISTINCT discord_id FROM gone) people
    ), present AS MATERIALIZED (
        SELECT discord_id, servers, proved_on(discord_id) AS proved_on FROM read WHERE servers <> '{}'
    ), changed AS MATERIALIZED (
        SELECT r.discord_id, v.servers AS servers_before, v.proved_on AS proved_before, p.servers, p.proved_on
        FROM read r LEFT JOIN verified_person v ON v.discord_id = r.discord_id
        LEFT JOIN present p ON p.discord_id = r.discord_id
        WHERE v.servers IS DISTINCT FROM p.servers OR v.proved_on IS DISTINCT FROM p.proved_on
    ), steps AS (
        SELECT servers_before AS servers, proved_before AS proved_on, -1 AS step FROM changed
        WHERE servers_before IS NOT NULL
        UNION ALL SELECT servers, proved_on, 1 FROM changed WHERE servers IS NOT NULL
    ), counts AS (
        INSERT INTO verified_count (server_id, total)
        SELECT server_id, sum(step) FROM steps, unnest(servers) AS server_id
        GROUP BY 1 HAVING sum(step) <> 0 ORDER BY 1
        ON CONFLICT (server_id) DO UPDATE SET total = verified_count.total + EXCLUDED.total
    ), audiences AS (
        INSERT INTO audience (servers, day, total)
        SELECT servers, day, sum(step) FROM (
            SELECT servers, DATE '1970-01-01' AS day, step FROM steps
            UNION ALL SELECT servers, unnest(proved_on), step FROM steps) s
        GROUP BY 1, 2 HAVING sum(step) <> 0
        ON CONFLICT (servers, day) DO UPDATE SET total = audience.total + EXCLUDED.total
    ), kept AS (
        INSERT INTO verified_person (discord_id, servers, proved_on)
        SELECT discord_id, servers, proved_on FROM changed WHERE servers IS NOT NULL
        ON CONFLICT (discord_id) DO UPDATE SET servers = EXCLUDED.servers, proved_on = EXCLUDED.proved_on
    ), forgotten AS (
        DELETE FROM verified_person v USING changed c WHERE c.discord_id = v.discord_id AND c.servers IS NULL
    )
    SELECT count(*) INTO folded FROM gone;
    DELETE FROM audience WHERE total = 0;
    RETURN folded;
END $$
"""
_REBUILD = """
CREATE FUNCTION verified_rebuild() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock(7164002);
    DELETE FROM verified_person;
    DELETE FROM verified_count;
    DELETE FROM audience;
    INSERT INTO verified_stale (discord_id)
    SELECT u.discord_id FROM "user" u WHERE EXISTS (SELECT 1 FROM wallet w WHERE w.user_id = u.id);
    PERFORM verified_fold();
END $$
"""
_TRIGGERS = {
    "verified_new_member": (
        "member", "AFTER INSERT ON member REFERENCING NEW TABLE AS changed FOR EACH STATEMENT "
        "EXECUTE FUNCTION verified_note_people()",
    ),
    "verified_gone_member": (
        "member", "AFTER DELETE ON member REFERENCING OLD TABLE AS changed FOR EACH STATEMENT "
        "EXECUTE FUNCTION verified_note_people()",
    ),
    # By row, because its condition costs nothing for the many updates that change no count.
    "verified_changed_member": (
        "member", "AFTER UPDATE ON member FOR EACH ROW WHEN ((OLD.left_at IS NULL) <> (NEW.left_at IS NULL) "
        "OR OLD.bot <> NEW.bot OR OLD.discord_id <> NEW.discord_id) EXECUTE FUNCTION verified_note_person()",
    ),
    # A user's wallets and choices are deleted with the row, when nothing tells any more whose they were.
    "verified_gone_user": (
        '"user"', 'AFTER DELETE ON "user" REFERENCING OLD TABLE AS changed FOR EACH STATEMENT '
        "EXECUTE FUNCTION verified_note_people()",
    ),
    "verified_changed_user": (
        '"user"', 'AFTER UPDATE ON "user" FOR EACH ROW WHEN (OLD.discord_id <> NEW.discord_id) '
        "EXECUTE FUNCTION verified_note_person()",
    ),
    "verified_new_wallet": (
        "wallet", "AFTER INSERT ON wallet REFERENCING NEW TABLE AS changed FOR EACH STATEMENT "
        "EXECUTE FUNCTION verified_note_users()",
    ),
    "verified_gone_wallet": (
        "wallet", "AFTER DELETE ON wallet REFERENCING OLD TABLE AS changed FOR EACH STATEMENT "
        "EXECUTE FUNCTION verified_note_users()",
    ),
    "verified_moved_wallet": (
        "wallet", "AFTER UPDATE ON wallet FOR EACH ROW WHEN (OLD.user_id <> NEW.user_id) "
        "EXECUTE FUNCTION verified_note_user()",
    ),
    "verified_new_choice": (
        "member_choice", "AFTER INSERT ON member_choice REFERENCING NEW TABLE AS changed FOR EACH STATEMENT "
        "EXECUTE FUNCTION verified_note_users()",
    ),
    "verified_gone_choice": (
        "member_choice", "AFTER DELETE ON member_choice REFERENCING OLD TABLE AS changed FOR EACH STATEMENT "
        "EXECUTE FUNCTION verified_note_users()",
    ),
    "verified_changed_choice": (
        "member_choice", "AFTER UPDATE ON member_choice FOR EACH ROW WHEN (OLD.use_wallets <> NEW.use_wallets) "
        "EXECUTE FUNCTION verified_note_user()",
    ),
    "verified_new_proof": (
        "event", "AFTER INSERT ON event FOR EACH ROW WHEN (NEW.kind = 'wallet.proved' AND NEW.subject IS NOT NULL) "
        "EXECUTE FUNCTION verified_note_proof()",
    ),
    "verified_gone_proof": (
        "event", "AFTER DELETE ON event FOR EACH ROW WHEN (OLD.kind = 'wallet.proved' AND OLD.subject IS NOT NULL) "
        "EXECUTE FUNCTION verified_note_proof()",
    ),
    "verified_renamed_proof": (
        "event", "AFTER UPDATE ON event FOR EACH ROW WHEN (OLD.kind = 'wallet.proved' AND OLD.subject IS NOT NULL) "
        "EXECUTE FUNCTION verified_note_proof()",
    ),
}  # fmt: skip


def upgrade() -> None:
    op.create_table(
        "verified_person",
        sa.Column("discord_id", sa.String(), primary_key=True),
        sa.Column("servers", postgresql.ARRAY(sa.Integer()), nullable=False),
        sa.Column("proved_on", postgresql.ARRAY(sa.Date()), nullable=False),
    )
    op.create_table(
        "verified_count",
        sa.Column("server_id", sa.Integer(), autoincrement=False, primary_key=True),
        sa.Column("total", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "audience",
        sa.Column("servers", postgresql.ARRAY(sa.Integer()), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("servers", "day"),
    )
    op.create_index("ix_audience_servers", "audience", ["servers"], postgresql_using="gin")
    op.create_index("ix_audience_empty", "audience", ["day"], postgresql_where=sa.text("total = 0"))
    op.create_table(
        "verified_stale",
        sa.Column("id", sa.BigInteger(), primary_key=True),
        sa.Column("discord_id", sa.String(), nullable=False),
    )
    for statement in (
        _VERIFIED_IN, _PROVED_ON, _NOTE_PEOPLE, _NOTE_PERSON, _NOTE_USERS, _NOTE_USER, _NOTE_PROOF, _FOLD, _REBUILD,
    ):  # fmt: skip
        op.execute(statement)
    for name, (_, what) in _TRIGGERS.items():
        op.execute(f"CREATE TRIGGER {name} {what}")


def downgrade() -> None:
    for name, (table, _) in _TRIGGERS.items():
        op.execute(f"DROP TRIGGER {name} ON {table}")
    for name in ("rebuild", "fold", "note_proof", "note_user", "note_users", "note_person", "note_people"):
        op.execute(f"DROP FUNCTION verified_{name}()")
    op.execute("DROP FUNCTION proved_on(text)")
    op.execute("DROP FUNCTION verified_in(text)")
    for table in ("verified_stale", "audience", "verified_count", "verified_person"):
        op.drop_table(table)
