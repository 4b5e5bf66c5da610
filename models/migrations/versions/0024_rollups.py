"""Counts by day, kind, server and rule, and how many members hold each rule's role"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

# Everybody who writes lines or grants writes counts, also a version that knows nothing of them: so triggers do it.
_COUNT_LINES = """
CREATE FUNCTION rollup_lines() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO rollup_delta (server_id, kind, day, rule_id, total)
    SELECT COALESCE(server_id, 0), kind, CAST(at AT TIME ZONE 'UTC' AS date), COALESCE(rule_id, 0), count(*)
    FROM added GROUP BY 1, 2, 3, 4;
    RETURN NULL;
END $$
"""
_COUNT_HOLDERS = """
CREATE FUNCTION rollup_holders() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO rollup_delta (server_id, kind, day, rule_id, total)
    SELECT c.server_id, 'holders', CAST(now() AT TIME ZONE 'UTC' AS date), r, count(*) * CAST(TG_ARGV[0] AS bigint)
    FROM changed c, unnest(c.rule_ids) r WHERE c.state IN ('held', 'taking') GROUP BY 1, 4;
    RETURN NULL;
END $$
"""
_COUNT_CHANGE = """
CREATE FUNCTION rollup_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO rollup_delta (server_id, kind, day, rule_id, total)
    SELECT NEW.server_id, 'holders', CAST(now() AT TIME ZONE 'UTC' AS date), s.rule_id, sum(s.step) FROM (
        SELECT unnest(NEW.rule_ids) AS rule_id, 1 AS step WHERE NEW.state IN ('held', 'taking')
        UNION ALL SELECT unnest(OLD.rule_ids), -1 WHERE OLD.state IN ('held', 'taking')) s
    GROUP BY s.rule_id HAVING sum(s.step) <> 0;
    RETURN NULL;
END $$
"""
# Counts begin here: what is in the tables now is counted by `rollup_fill`, everything later by the triggers. Writers
# wait only until the present holders are counted.
_BEGIN = """
CREATE FUNCTION rollup_begin() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock(7164001);
    LOCK TABLE event, "grant" IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM rollup_delta;
    DELETE FROM rollup;
    DELETE FROM holder_count;
    INSERT INTO holder_count (server_id, rule_id, total)
    SELECT g.server_id, r, count(*) FROM "grant" g, unnest(g.rule_ids) r WHERE g.state IN ('held', 'taking')
    GROUP BY 1, 2;
    INSERT INTO rollup (server_id, kind, day, rule_id, total)
    SELECT 0, 'fill', DATE '1970-01-01', 0, COALESCE(max(id), 0) FROM event;
END $$
"""
# Each line about somebody's role is a step to the rules that hold it from then on: those that a `role.given`,
# a `role.taken_over` or a later `role.reasons` names, and none once it is taken, lost, gone with its member, or deleted
# in Discord. Of somebody who asked to be forgotten, lines that are not renamed yet belong to those that are.
_FILL = """
CREATE FUNCTION rollup_fill() RETURNS void LANGUAGE plpgsql SET work_mem = '128MB' AS $$ DECLARE upto bigint; BEGIN
    PERFORM pg_advisory_xact_lock(7164001);
    DELETE FROM rollup WHERE kind = 'fill' RETURNING total INTO upto;
    IF upto IS NULL THEN RETURN; END IF;
    WITH steps AS MATERIALIZED (
        SELECT id, at, kind, server_id, role_id, COALESCE(f.pseudonym, subject) AS subject,
               CASE WHEN kind IN ('role.given', 'role.taken_over', 'role.reasons') THEN
                   ARRAY(SELECT CAST(r AS integer) FROM jsonb_array_elements_text(data -> 'ruleIds') r)
               ELSE CAST('{}' AS integer[]) END AS rules
        FROM event LEFT JOIN farewell f ON f.discord_id = subject WHERE id <= upto AND server_id IS NOT NULL
        AND kind IN ('role.given', 'role.taken_over', 'role.reasons', 'role.taken', 'role.lost', 'member.left',
                     'role.deleted')
    ), had AS (
        SELECT DISTINCT server_id, role_id, subject FROM steps WHERE kind IN ('role.given', 'role.taken_over')
    ), every AS (
        SELECT id, at, server_id, role_id, subject, rules FROM steps WHERE kind NOT IN ('member.left', 'role.deleted')
        UNION ALL
        SELECT s.id, s.at, h.server_id, h.role_id, h.subject, s.rules FROM steps s JOIN had h
        ON h.server_id = s.server_id AND h.subject = s.subject WHERE s.kind = 'member.left'
        UNION ALL
        SELECT s.id, s.at, h.server_id, h.role_id, h.subject, s.rules FROM steps s JOIN had h
        ON h.server_id = s.server_id AND h.role_id = s.role_id WHERE s.kind = 'role.deleted'
    ), changes AS (
        SELECT server_id, at, rules AS after, lag(rules, 1, CAST('{}' AS integer[])) OVER (
            PARTITION BY server_id, role_id, subject ORDER BY id) AS before FROM every
    ), turns AS (
        SELECT server_id, unnest(after) AS rule_id, at, 1 AS step FROM changes
        UNION ALL SELECT server_id, unnest(before), at, -1 FROM changes
    ), counted AS (
        SELECT COALESCE(server_id, 0) AS server_id, kind, CAST(at AT TIME ZONE 'UTC' AS date) AS day,
               COALESCE(rule_id, 0) AS rule_id, count(*) AS total
        FROM event WHERE id <= upto GROUP BY 1, 2, 3, 4
        UNION ALL
        SELECT server_id, 'holders', CAST(at AT TIME ZONE 'UTC' AS date), rule_id, sum(step) FROM turns
        GROUP BY 1, 3, 4 HAVING sum(step) <> 0
    )
    INSERT INTO rollup (server_id, kind, day, rule_id, total)
    SELECT server_id, kind, day, rule_id, total FROM counted ORDER BY 1, 2, 3, 4
    ON CONFLICT (server_id, kind, day, rule_id) DO UPDATE SET total = rollup.total + EXCLUDED.total;
END $$
"""
# In one order and one at a time, so that no two wait for each other; who finds it done by another leaves.
_FOLD = """
CREATE FUNCTION rollup_fold() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE folded bigint; BEGIN
    IF NOT pg_try_advisory_xact_lock(7164001) THEN RETURN 0; END IF;
    WITH gone AS (DELETE FROM rollup_delta RETURNING server_id, kind, day, rule_id, total),
    days AS (
        INSERT INTO rollup (server_id, kind, day, rule_id, total)
        SELECT server_id, kind, day, rule_id, sum(total) FROM gone GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
        ON CONFLICT (server_id, kind, day, rule_id) DO UPDATE SET total = rollup.total + EXCLUDED.total),
    present AS (
        INSERT INTO holder_count (server_id, rule_id, total)
        SELECT server_id, rule_id, sum(total) FROM gone WHERE kind = 'holders' GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (server_id, rule_id) DO UPDATE SET total = holder_count.total + EXCLUDED.total)
    SELECT count(*) INTO folded FROM gone;
    RETURN folded;
END $$
"""
_TRIGGERS = (
    "CREATE TRIGGER rollup_lines AFTER INSERT ON event REFERENCING NEW TABLE AS added "
    "FOR EACH STATEMENT EXECUTE FUNCTION rollup_lines()",
    'CREATE TRIGGER rollup_new_holders AFTER INSERT ON "grant" REFERENCING NEW TABLE AS changed '
    "FOR EACH STATEMENT EXECUTE FUNCTION rollup_holders('1')",
    'CREATE TRIGGER rollup_gone_holders AFTER DELETE ON "grant" REFERENCING OLD TABLE AS changed '
    "FOR EACH STATEMENT EXECUTE FUNCTION rollup_holders('-1')",
    # By row, because its condition costs nothing for the many updates that change no count.
    'CREATE TRIGGER rollup_changed_holders AFTER UPDATE ON "grant" FOR EACH ROW '
    "WHEN ((OLD.state IN ('held', 'taking')) <> (NEW.state IN ('held', 'taking')) OR OLD.rule_ids <> NEW.rule_ids) "
    "EXECUTE FUNCTION rollup_change()",
)


def upgrade() -> None:
    op.create_table(
        "rollup",
        sa.Column("server_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("rule_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("server_id", "kind", "day", "rule_id"),
    )
    op.create_table(
        "holder_count",
        sa.Column("server_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rule_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("server_id", "rule_id"),
    )
    op.create_table(
        "rollup_delta",
        sa.Column("id", sa.BigInteger(), primary_key=True),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("rule_id", sa.Integer(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
    )
    for statement in (_COUNT_LINES, _COUNT_HOLDERS, _COUNT_CHANGE, _BEGIN, _FILL, _FOLD, *_TRIGGERS):
        op.execute(statement)
    op.execute("SELECT rollup_begin()")


def downgrade() -> None:
    op.execute("DROP TRIGGER rollup_lines ON event")
    for name in ("rollup_new_holders", "rollup_gone_holders", "rollup_changed_holders"):
        op.execute(f'DROP TRIGGER {name} ON "grant"')
    for name in ("lines", "holders", "change", "begin", "fill", "fold"):
        op.execute(f"DROP FUNCTION rollup_{name}()")
    for table in ("rollup_delta", "holder_count", "rollup"):
        op.drop_table(table)
