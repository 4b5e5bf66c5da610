"""The upgrade that partitions the log: no outage, no line lost or counted twice, and it can be reverted."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import models
from app import backup
from app.postgres.server import Postgres
from setting_checks import libpq_url
from tests.models.log_months import first_id, month
from tests.models.test_migrations import alembic

BEFORE, UPGRADE = "0054", "0055"
SERVERS = """
INSERT INTO server (id, discord_id, name, description, bot_invited, created_at)
SELECT n, n::text, 'A', '', true, now() FROM generate_series(1, 2) n
"""
# The exact statement of the previous version.
RECORD = """
    WITH line AS (INSERT INTO event (at, kind, server_id, actor, subject, role_id, rule_id, batch, data, request_id)
    SELECT at, kind, server_id, actor, subject, role_id, rule_id, batch, data, request_id
    FROM jsonb_to_recordset(CAST(%(rows)s AS jsonb)) AS e (
        at timestamptz, kind text, server_id integer, actor text, subject text, role_id text, rule_id integer,
        batch uuid, data jsonb, request_id text)
    RETURNING id, kind, server_id, subject)
    INSERT INTO webhook_delivery (uuid, state, attempts, created_at, next_at, server_id, event_id, event)
    SELECT gen_random_uuid(), 'waiting', 0, now(), now(), l.server_id, l.id, l.kind
    FROM line l JOIN webhook w ON w.server_id = l.server_id
"""
ROW = """INSERT INTO event (at, kind, server_id, data) VALUES (now(), %(kind)s, 1, '{}') RETURNING id"""
CLEAR = """
    WITH oldest AS (SELECT id, at FROM event ORDER BY id LIMIT 50000),
    gone AS (DELETE FROM event e USING oldest o WHERE e.id = o.id
             AND o.at < now() - make_interval(days => 365) RETURNING 1)
    SELECT count(*) FROM gone
"""
COUNTED = "SELECT kind, sum(total) FROM (SELECT * FROM rollup_delta UNION ALL SELECT 0, * FROM rollup) c GROUP BY 1"
SHAPE = """
SELECT 'column', attname, format_type(atttypid, atttypmod), attnotnull::text,
       (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum)
FROM pg_attribute WHERE attrelid = 'event'::regclass AND attnum > 0
UNION ALL SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid::text, NULL
FROM pg_index WHERE indrelid = 'event'::regclass
UNION ALL SELECT 'constraint', conname, pg_get_constraintdef(oid), convalidated::text, NULL
FROM pg_constraint WHERE conrelid = 'event'::regclass
UNION ALL SELECT 'trigger', tgname, pg_get_triggerdef(oid), NULL, NULL
FROM pg_trigger WHERE tgrelid = 'event'::regclass AND NOT tgisinternal
UNION ALL SELECT 'sequence', pg_get_serial_sequence('event', 'id'), NULL, NULL, NULL ORDER BY 1, 2
"""
PARTS = """
SELECT p.name, p.first_id, p.end_id, (SELECT count(*) FROM pg_index WHERE indrelid = p.name::regclass),
       (SELECT count(*) FROM pg_trigger WHERE tgrelid = p.name::regclass AND NOT tgisinternal),
       (SELECT string_agg(pg_get_constraintdef(oid), ', ' ORDER BY 1) FROM pg_constraint
        WHERE conrelid = p.name::regclass AND contype <> 'n')
FROM event_partitions() p
"""


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(libpq_url(url), autocommit=True) as connection:
        yield connection


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with connected(url) as connection:
        return connection.execute(statement.encode()).fetchall()


def lines(url: str) -> list[tuple[object, ...]]:
    return rows(url, "SELECT id, at, kind, server_id, subject, role_id, batch, data::text FROM event ORDER BY id")


def fill(url: str, many: int = 2_000) -> None:
    """Fill in a server's log of fourteen months, as the previous version left it, and one line from another age."""
    with connected(url) as connection:
        connection.execute(SERVERS.encode())
        connection.execute(
            b"""
            INSERT INTO event (at, kind, server_id, subject, role_id, data)
            SELECT now() - interval '430 days' * (1 - n::float / %(many)s), 'role.given', 1 + n %% 2, n::text, '7',
                   '{"ruleIds": [5]}' FROM generate_series(1, %(many)s) n
            """,
            {"many": many},
        )
        connection.execute(b"INSERT INTO event (at, kind, server_id, data) VALUES ('2999-01-01', 'odd', 1, '{}')")


def test_a_log_is_as_it_was_after_the_upgrade_and_as_in_a_fresh_database(database_url: str) -> None:
    fresh, fresh_parts = rows(database_url, SHAPE), rows(database_url, PARTS)
    alembic(database_url, "downgrade", BEFORE)
    plain = rows(database_url, SHAPE)
    assert [one[:2] for one in plain] == [one[:2] for one in fresh]
    fill(database_url)
    before, counted = lines(database_url), sorted(rows(database_url, COUNTED), key=str)
    alembic(database_url, "upgrade", "head")
    alembic(database_url, "check")
    assert lines(database_url) == before
    assert sorted(rows(database_url, COUNTED), key=str) == counted
    assert rows(database_url, SHAPE) == fresh
    # The ids of an earlier partitioned log come after those of the months, which continue from there.
    parts = rows(database_url, PARTS)
    assert [one[3:] for one in parts] == [fresh_parts[0][3:]] * len(parts)
    assert parts[0][0] == "event_before"


def test_the_lines_of_before_are_not_rewritten(database_url: str) -> None:
    alembic(database_url, "downgrade", BEFORE)
    fill(database_url)
    files = "SELECT pg_relation_filenode('{0}'), array_agg(pg_relation_filenode(indexrelid) ORDER BY 1) " \
        "FROM pg_index WHERE indrelid = '{0}'::regclass"  # fmt: skip
    before = rows(database_url, files.format("event"))
    alembic(database_url, "upgrade", "head")
    assert rows(database_url, files.format("event_before")) == before


def test_the_version_before_goes_on_writing_reading_and_clearing(database_url: str) -> None:
    alembic(database_url, "downgrade", BEFORE)
    fill(database_url)
    with connected(database_url) as old:
        old.prepare_threshold = 0
        # Prepared before the upgrade, as in a process that runs through it.
        old.execute(ROW.encode(), {"kind": "before"})
        alembic(database_url, "upgrade", "head")
        (after,) = old.execute(ROW.encode(), {"kind": "after"}).fetchall()
        row = '[{"at": "2026-11-25T00:00Z", "kind": "rule.created", "server_id": 2, "data": {}}]'
        old.execute(RECORD.encode(), {"rows": row})
        newest = old.execute(b"SELECT id, kind FROM event ORDER BY id DESC LIMIT 2").fetchall()
        assert [kind for _, kind in newest] == ["rule.created", "after"]
        assert newest[1][0] == after[0]
        assert old.execute(CLEAR.encode()).fetchone() != (0,)
        assert old.execute(b"SELECT count(*) FROM event WHERE at < now() - interval '365 days'").fetchone() == (0,)
        with pytest.raises(psycopg.errors.UniqueViolation):
            old.execute(b"INSERT INTO event (id, at, kind, data) SELECT min(id), now(), 'x', '{}' FROM event")
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            old.execute(b"INSERT INTO event (at, kind, server_id, data) VALUES (now(), 'x', 99, '{}')")
        old.execute(b"DELETE FROM server WHERE id = 1")
        assert old.execute(b"SELECT DISTINCT server_id FROM event").fetchall() == [(2,)]
    counted = rows(database_url, COUNTED)
    assert {("before", 1), ("after", 1), ("rule.created", 1)} <= set(counted)


@pytest.mark.parametrize("server_first", [True, False])
def test_lines_written_while_it_runs_are_all_there_and_counted_once(database_url: str, server_first: bool) -> None:
    alembic(database_url, "downgrade", BEFORE)
    fill(database_url, 20_000)
    ended, faults, written = threading.Event(), list[Exception](), [0, 0, 0]

    def write(who: int) -> None:
        try:
            with connected(database_url) as connection:
                while not ended.is_set():
                    with connection.transaction():
                        if server_first:
                            connection.execute(b"UPDATE server SET name = 'x' WHERE id = %s", [1 + who % 2])
                        connection.execute(ROW.encode(), {"kind": f"by.{who}"})
                        if not server_first:
                            connection.execute(b"UPDATE server SET name = 'x' WHERE id = %s", [1 + who % 2])
                        connection.execute(b"SELECT count(*) FROM event WHERE server_id = 2 AND kind = 'x'")
                    written[who] += 1
        except Exception as fault:  # noqa: BLE001 - told to the test
            faults.append(fault)

    writers = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    for one in writers:
        one.start()
    try:
        alembic(database_url, "upgrade", "head")
    finally:
        ended.set()
        for one in writers:
            one.join()
    assert faults == []
    assert min(written) > 0
    kept = "SELECT kind, count(*) FROM event WHERE kind LIKE 'by.%' GROUP BY 1 ORDER BY 1"
    assert rows(database_url, kept) == [(f"by.{who}", many) for who, many in enumerate(written)]
    assert [one for one in sorted(rows(database_url, COUNTED), key=str) if str(one[0]).startswith("by.")] == [
        (f"by.{who}", many) for who, many in enumerate(written)
    ]


def test_it_is_taken_up_again_where_it_was_ended(database_url: str) -> None:
    alembic(database_url, "downgrade", BEFORE)
    fill(database_url)
    with connected(database_url) as connection:
        connection.execute(b"ALTER TABLE event ADD CONSTRAINT event_before_ids CHECK (id < 7777777777777777) NOT VALID")
        connection.execute(b"CREATE FUNCTION event_first_id(month date) RETURNS bigint LANGUAGE sql RETURN 1")
    alembic(database_url, "upgrade", UPGRADE)
    with connected(database_url) as connection:
        # It ended between the swap and the note that the swap is done.
        connection.execute(f"UPDATE alembic_version SET version_num = '{BEFORE}'".encode())
    before = lines(database_url)
    alembic(database_url, "upgrade", "head")
    alembic(database_url, "check")
    assert lines(database_url) == before


def test_it_is_taken_back_with_the_lines_of_every_month(database_url: str) -> None:
    with connected(database_url) as connection:
        connection.execute(SERVERS.encode())
        connection.execute(b"INSERT INTO event (id, at, kind, data) VALUES (5, now(), 'before', '{}')")
        connection.execute(ROW.encode(), {"kind": "now"})
        connection.execute(
            b"INSERT INTO event (id, at, kind, data) VALUES (%s, now(), 'later', '{}')", [first_id(month(-1)) + 5]
        )
    before, counted = lines(database_url), sorted(rows(database_url, COUNTED), key=str)
    alembic(database_url, "downgrade", BEFORE)
    assert lines(database_url) == before
    assert sorted(rows(database_url, COUNTED), key=str) == counted
    assert rows(database_url, "SELECT tablename FROM pg_tables WHERE tablename LIKE 'event%'") == [("event",)]
    with connected(database_url) as connection:
        connection.execute(ROW.encode(), {"kind": "taken back"})
    alembic(database_url, "upgrade", "head")
    assert [line for line in lines(database_url) if line[2] != "taken back"] == before
    with connected(database_url) as connection:
        connection.execute(b"DROP TABLE event_before")
    alembic(database_url, "downgrade", BEFORE)
    assert lines(database_url) == []


async def test_a_backup_has_every_month_and_a_restored_log_goes_on(database_url: str, short_dir: Path) -> None:
    with connected(database_url) as connection:
        connection.execute(SERVERS.encode())
        connection.execute(b"INSERT INTO event (id, at, kind, data) VALUES (5, now(), 'before', '{}')")
        connection.execute(ROW.encode(), {"kind": "now"})
        connection.execute(
            b"INSERT INTO event (id, at, kind, data) VALUES (%s, now(), 'later', '{}')", [first_id(month(-1)) + 5]
        )
    before, shape, parts = lines(database_url), rows(database_url, SHAPE), rows(database_url, PARTS)
    assert len(before) == 3
    await models.use(None)
    await asyncio.to_thread(backup.dump, database_url, short_dir / "x.dump")
    fresh = short_dir / "fresh" / "db"
    await asyncio.to_thread(backup.restore, short_dir / "x.dump", fresh, force=False, say=lambda _: None)
    with Postgres(fresh, durable=False, say=lambda _: None) as postgres:
        assert lines(postgres.url) == before
        assert rows(postgres.url, SHAPE) == shape
        assert rows(postgres.url, PARTS) == parts
        with connected(postgres.url) as connection:
            (made,) = connection.execute(ROW.encode(), {"kind": "role.given"}).fetchall()
            assert made[0] == int(str(before[1][0])) + 1
        assert ("role.given", 1) in rows(postgres.url, COUNTED)
        await asyncio.to_thread(alembic, postgres.url, "check")
