"""The databases that tests use one after another: each is like the first, whatever a test did to the one before."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from tests.support.databases import TEMPLATE, Databases, Session, named, plain

PERSON = """INSERT INTO "user" (discord_id, username, connected, created_at, updated_at)
VALUES ('1', 'ada', true, now(), now()) RETURNING id"""
SETTING = """DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET timezone = %L', current_database(), 'Asia/Tokyo');
END $$"""


@pytest.fixture(scope="module")
def databases_here(postgres_url: str, template_url: str) -> Iterator[Databases]:
    with psycopg.connect(plain(postgres_url), autocommit=True) as admin:
        made = Databases(admin, postgres_url)
        yield made
        made.drop()


@pytest.fixture
def own(databases_here: Databases) -> Iterator[Databases]:
    """Databases for the tests of this file alone."""
    yield databases_here
    databases_here.clear()


def connected(url: str) -> Session:
    return psycopg.connect(plain(url), autocommit=True)


def asked(url: str, statement: str) -> list[tuple[object, ...]]:
    with connected(url) as database:
        return database.execute(statement.encode()).fetchall()


def rows(url: str) -> dict[object, list[tuple[object, ...]]]:
    """Return the rows of every table."""
    with connected(url) as database:
        tables = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return {name: database.execute(f'SELECT * FROM "{name}"'.encode()).fetchall() for (name,) in tables}


def which(url: str) -> list[tuple[object, ...]]:
    """Return the database's oid, which does not depend on its name."""
    return asked(url, "SELECT oid FROM pg_database WHERE datname = current_database()")


def test_what_was_written_is_gone_with_its_numbers_and_its_connections(own: Databases, postgres_url: str) -> None:
    first = own.ready()
    same = which(first)
    assert asked(first, PERSON) == [(1,)]
    with closing(connected(first)) as somebody:
        somebody.execute('BEGIN; LOCK TABLE "user"')
        own.clear()
        with pytest.raises(psycopg.OperationalError):
            somebody.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        connected(first)

    second = own.ready()
    assert which(second) == same
    assert rows(second) == rows(named(postgres_url, TEMPLATE))
    assert asked(second, PERSON) == [(1,)]


@pytest.mark.parametrize(
    "done",
    [
        "ALTER TABLE rule ADD COLUMN more int",
        'ALTER TABLE "user" ALTER COLUMN username DROP NOT NULL',
        "CREATE TABLE more (number int)",
        "DROP INDEX ix_session_user_id",
        "CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "UPDATE alembic_version SET version_num = '0001'",
        'ANALYZE "user"',
        SETTING,
    ],
)
def test_one_that_would_stay_another_one_is_thrown_away(own: Databases, postgres_url: str, done: str) -> None:
    first = own.ready()
    before = which(first)
    with connected(first) as somebody:
        somebody.execute(PERSON.encode())
        somebody.execute(done.encode())
    own.clear()

    second = own.ready()
    assert which(second) != before
    assert rows(second) == rows(named(postgres_url, TEMPLATE))
