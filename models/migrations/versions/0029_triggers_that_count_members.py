"""Triggers that count the stored members of each server"""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

# Present members without bots, as the list of members has them: kind `members` in `rollup`, by how many more they are
# since the day before. The sum over all days is how many there are.
_COUNT = """
CREATE FUNCTION rollup_members() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO rollup_delta (server_id, kind, day, rule_id, total)
    SELECT server_id, 'members', CAST(now() AT TIME ZONE 'UTC' AS date), 0, count(*) * CAST(TG_ARGV[0] AS bigint)
    FROM changed WHERE left_at IS NULL AND NOT bot GROUP BY 1;
    RETURN NULL;
END $$
"""
_COUNT_CHANGE = """
CREATE FUNCTION rollup_member() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO rollup_delta (server_id, kind, day, rule_id, total)
    VALUES (NEW.server_id, 'members', CAST(now() AT TIME ZONE 'UTC' AS date), 0,
            CASE WHEN NEW.left_at IS NULL AND NOT NEW.bot THEN 1 ELSE -1 END);
    RETURN NULL;
END $$
"""
_PRESENT = """
INSERT INTO rollup (server_id, kind, day, rule_id, total)
SELECT server_id, 'members', CAST(now() AT TIME ZONE 'UTC' AS date), 0, count(*) FROM member
WHERE left_at IS NULL AND NOT bot GROUP BY 1
"""
_BEGIN = """
CREATE OR REPLACE FUNCTION rollup_begin() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock(7164001);
    LOCK TABLE event, "grant"{also} IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM rollup_delta;
    DELETE FROM rollup;
    DELETE FROM holder_count;
    INSERT INTO holder_count (server_id, rule_id, total)
    SELECT g.server_id, r, count(*) FROM "grant" g, unnest(g.rule_ids) r WHERE g.state IN ('held', 'taking')
    GROUP BY 1, 2;
    INSERT INTO rollup (server_id, kind, day, rule_id, total)
    SELECT 0, 'fill', DATE '1970-01-01', 0, COALESCE(max(id), 0) FROM event;
    {more}
END $$
"""
_TRIGGERS = (
    "CREATE TRIGGER rollup_new_members AFTER INSERT ON member REFERENCING NEW TABLE AS changed "
    "FOR EACH STATEMENT EXECUTE FUNCTION rollup_members('1')",
    "CREATE TRIGGER rollup_gone_members AFTER DELETE ON member REFERENCING OLD TABLE AS changed "
    "FOR EACH STATEMENT EXECUTE FUNCTION rollup_members('-1')",
    "CREATE TRIGGER rollup_changed_member AFTER UPDATE ON member FOR EACH ROW "
    "WHEN ((OLD.left_at IS NULL AND NOT OLD.bot) <> (NEW.left_at IS NULL AND NOT NEW.bot)) "
    "EXECUTE FUNCTION rollup_member()",
)


def upgrade() -> None:
    op.execute(_COUNT)
    op.execute(_COUNT_CHANGE)
    for statement in _TRIGGERS:
        op.execute(statement)
    # The triggers' lock keeps writers of members waiting for as long as this takes: a fifth of a second for 200,000.
    op.execute(_PRESENT)
    op.execute(_BEGIN.format(also=", member", more=f"{_PRESENT};"))


def downgrade() -> None:
    op.execute(_BEGIN.format(also="", more=""))
    for name in ("new_members", "gone_members", "changed_member"):
        op.execute(f"DROP TRIGGER rollup_{name} ON member")
    op.execute("DROP FUNCTION rollup_members()")
    op.execute("DROP FUNCTION rollup_member()")
    for table in ("rollup", "rollup_delta"):
        op.execute(f"DELETE FROM {table} WHERE kind = 'members'")
