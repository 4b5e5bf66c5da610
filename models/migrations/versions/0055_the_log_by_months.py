"""The log partitioned by month, while everybody goes on reading and writing"""

import time
from datetime import date

import psycopg
import sqlalchemy as sa
from alembic import op
from sqlalchemy.exc import OperationalError

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None

# The log is partitioned by its ids, and a month has a range of them: 202612000000000 and what follows belong to
# December 2026. At the turn of the month the sequence is moved forward to the next range. So no line ever lacks a
# partition, whatever time it bears; `id` stays the primary key; and the order of ids stays that of time.
_FIRST_ID = """
CREATE FUNCTION event_first_id(month date) RETURNS bigint IMMUTABLE LANGUAGE sql
RETURN CAST(to_char(month, 'YYYYMM') AS bigint) * 1000000000
"""
# The partitions with their ranges, the oldest first. The one of the lines of before has no lower end.
_PARTITIONS = """
CREATE FUNCTION event_partitions() RETURNS TABLE (name text, first_id bigint, end_id bigint) STABLE LANGUAGE sql AS $$
    SELECT CAST(c.relname AS text),
           COALESCE(CAST(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \\(''(\\d+)''\\)') AS bigint), 0),
           CAST(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \\(''(\\d+)''\\)') AS bigint)
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = CAST('event' AS regclass) ORDER BY 2
$$
"""
# Called by this migration and by a job each hour. A new partition is attached without a lock that a writer or reader of
# the log waits for; only writers of `server` do, for the moment in which its foreign key is made.
_MONTHS = """
CREATE FUNCTION event_months(ahead integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    present date := CAST(date_trunc('month', now() AT TIME ZONE 'UTC') AS date);
    month date;
    name text;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(7164003);
    FOR step IN 0..ahead LOOP
        month := present + make_interval(months => step);
        name := to_char(month, '"event_"YYYY_MM');
        CONTINUE WHEN EXISTS (SELECT 1 FROM event_partitions() p WHERE p.end_id > event_first_id(month));
        EXECUTE format('CREATE TABLE %I (LIKE event INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name);
        EXECUTE format('ALTER TABLE event ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', name,
                       event_first_id(month), event_first_id(CAST(month + interval '1 month' AS date)));
        made := made + 1;
    END LOOP;
    -- Forward only: a number that was given once is never given again.
    IF (SELECT last_value FROM event_id_seq) < event_first_id(present) AND EXISTS (
        SELECT 1 FROM event_partitions() p WHERE p.first_id = event_first_id(present)
    ) THEN
        PERFORM setval('event_id_seq', event_first_id(present), false);
    END IF;
    RETURN made;
END $$
"""
# One statement: the table with the lines of before becomes the first partition of another with its name, and those
# who wait for the name go on with the new one. Nothing is read or rewritten, because the constraint was checked before
# and the indexes are there already. What is on the table is taken over as it is, so that each trigger fires once.
_SWAP = """
DO $$
DECLARE
    indexes text[];
    triggers text[];
    one record;
    what text;
BEGIN
    LOCK TABLE {first} IN ACCESS EXCLUSIVE MODE;
    LOCK TABLE {second} IN ACCESS EXCLUSIVE MODE;
    SELECT array_agg(pg_get_triggerdef(oid) ORDER BY tgname) INTO triggers FROM pg_trigger
    WHERE tgrelid = CAST('event' AS regclass) AND NOT tgisinternal;
    FOR one IN SELECT tgname FROM pg_trigger WHERE tgrelid = CAST('event' AS regclass) AND NOT tgisinternal LOOP
        EXECUTE format('DROP TRIGGER %I ON event', one.tgname);
    END LOOP;
    SELECT array_agg(pg_get_indexdef(indexrelid)) INTO indexes FROM pg_index
    WHERE indrelid = CAST('event' AS regclass) AND NOT indisprimary;
    ALTER TABLE event RENAME TO event_before;
    FOR one IN SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
               WHERE i.indrelid = CAST('event_before' AS regclass) LOOP
        EXECUTE format('ALTER INDEX %I RENAME TO %I', one.relname,
                       'event_before_' || regexp_replace(one.relname, '^(ix_)?event_', ''));
    END LOOP;
    CREATE TABLE event (LIKE event_before INCLUDING DEFAULTS) PARTITION BY RANGE (id);
    ALTER TABLE event ADD PRIMARY KEY (id);
    ALTER TABLE event ADD CONSTRAINT event_server_id_fkey
        FOREIGN KEY (server_id) REFERENCES server (id) ON DELETE CASCADE;
    FOREACH what IN ARRAY indexes LOOP
        EXECUTE what;
    END LOOP;
    ALTER TABLE event ATTACH PARTITION event_before FOR VALUES FROM (MINVALUE) TO ({end});
    FOREACH what IN ARRAY triggers LOOP
        EXECUTE what;
    END LOOP;
    ALTER TABLE event_before DROP CONSTRAINT event_before_ids;
    ALTER SEQUENCE event_id_seq OWNED BY event.id;
    PERFORM event_months({ahead});
END $$
"""
_BACK = """
DO $$
DECLARE
    triggers text[];
    names text[];
    one record;
    what text;
BEGIN
    LOCK TABLE event IN ACCESS EXCLUSIVE MODE;
    LOCK TABLE server IN ACCESS EXCLUSIVE MODE;
    IF to_regclass('event_before') IS NULL THEN
        CREATE TABLE event_before (LIKE event INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
        EXECUTE format('ALTER TABLE event ATTACH PARTITION event_before FOR VALUES FROM (MINVALUE) TO (%s)',
                       (SELECT min(first_id) FROM event_partitions()));
    END IF;
    SELECT array_agg(pg_get_triggerdef(oid) ORDER BY tgname) INTO triggers FROM pg_trigger
    WHERE tgrelid = CAST('event' AS regclass) AND NOT tgisinternal;
    SELECT array_agg(format('ALTER INDEX %I RENAME TO %I', own.relname, common.relname)) INTO names
    FROM pg_index i JOIN pg_class own ON own.oid = i.indexrelid
    JOIN pg_inherits h ON h.inhrelid = own.oid JOIN pg_class common ON common.oid = h.inhparent
    WHERE i.indrelid = CAST('event_before' AS regclass);
    ALTER TABLE event DETACH PARTITION event_before;
    FOR one IN SELECT name FROM event_partitions() LOOP
        EXECUTE format('INSERT INTO event_before SELECT * FROM %I', one.name);
    END LOOP;
    ALTER SEQUENCE event_id_seq OWNED BY event_before.id;
    DROP TABLE event;
    ALTER TABLE event_before RENAME TO event;
    FOREACH what IN ARRAY names LOOP
        EXECUTE what;
    END LOOP;
    FOREACH what IN ARRAY triggers LOOP
        EXECUTE what;
    END LOOP;
END $$
"""

AHEAD = 3
"""How many months have a partition before they begin."""
LOCK_MILLISECONDS = 400
"""How long each of the two locks is waited for: together shorter than the second after which PostgreSQL looks for
deadlocks, so that nobody who waits behind them is ended for one."""
TRIES, PAUSE_SECONDS = 60, 1.0


def _is_whole() -> bool:
    return (
        op.get_bind().execute(sa.text("SELECT relkind = 'r' FROM pg_class WHERE oid = 'event'::regclass")).scalar_one()
    )


def _end() -> int:
    """Return the first id of the months: it is above every line that there is or will be before the swap."""
    found = sa.text(
        "SELECT GREATEST(last_value, (SELECT max(id) FROM event)), CAST(now() AT TIME ZONE 'UTC' AS date) "
        "FROM event_id_seq"
    )
    last, today = op.get_bind().execute(found).one()
    first = _first_id(today)
    if last < first:
        return first
    # The log was partitioned once and was taken back: its months stay together, with a whole one to spare.
    number = last // 10**9
    year, month = divmod(number // 100 * 12 + number % 100 - 1 + 2, 12)
    return _first_id(date(year, month + 1, 1))


def _first_id(day: date) -> int:
    return (day.year * 100 + day.month) * 10**9


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for name in ("months(integer)", "partitions()", "first_id(date)"):
            op.execute(f"DROP FUNCTION IF EXISTS event_{name}")
        for statement in (_FIRST_ID, _PARTITIONS, _MONTHS):
            op.execute(statement)
        if _is_whole():
            _partition()


def _partition() -> None:
    """Partition in statements that each commit: the table can be used wherever this is broken off."""
    end = _end()
    limit = op.get_bind().execute(sa.text("SHOW lock_timeout")).scalar_one()
    op.execute("ALTER TABLE event DROP CONSTRAINT IF EXISTS event_before_ids")
    op.execute(f"ALTER TABLE event ADD CONSTRAINT event_before_ids CHECK (id < {end}) NOT VALID")
    # Reads the whole log while everybody goes on writing.
    op.execute("ALTER TABLE event VALIDATE CONSTRAINT event_before_ids")
    op.execute(f"SET lock_timeout = {LOCK_MILLISECONDS}")
    for attempt in range(1, TRIES + 1):
        try:
            # A transaction that uses both tables stands in the way of one order of locks, and not of the other.
            first, second = ("server", "event") if attempt % 2 else ("event", "server")
            op.execute(_SWAP.format(end=end, ahead=AHEAD, first=first, second=second))
            break
        except OperationalError as fault:
            if not isinstance(fault.orig, psycopg.errors.LockNotAvailable) or attempt == TRIES:
                raise
            time.sleep(PAUSE_SECONDS)
    op.execute(f"SET lock_timeout = '{limit}'")
    # PostgreSQL gathers statistics about a partition by itself, and about all of them together only when asked.
    op.execute("ANALYZE event")


def downgrade() -> None:
    op.execute(_BACK)
    for name in ("months(integer)", "partitions()", "first_id(date)"):
        op.execute(f"DROP FUNCTION event_{name}")
