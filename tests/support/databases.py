"""The migrated database that tests use one after another: what a test wrote is removed when the test ends.

A clone of the template consists of some six hundred new files. Creating them takes up to a third of a second on a
machine that creates and deletes files all the time, and hundreds of tests need a database. A test writes to only a
handful of tables, so those are emptied instead. A database that then differs from the template in any other way is
dropped.
"""

import re
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import psycopg
from psycopg import Connection, sql

Session = Connection[tuple[object, ...]]
Writes = dict[str, int]
"""How many rows were ever inserted into each table; updated and deleted ones count in tables with rows of their own."""

TEMPLATE = "template_holdfast"

# What a test can leave behind besides rows: tables, columns, constraints, triggers, functions, settings, and the
# planner's statistics. What TRUNCATE itself changes (a table's file, size and age) is left out. Each row of a catalog
# carries the number of the transaction that wrote it, and these numbers only grow: an equal count of rows with an
# equal sum means that the rows are the same.
CATALOGS = {
    "pg_attribute": "attrelid", "pg_attrdef": "adrelid", "pg_constraint": "oid", "pg_index": "indrelid",
    "pg_trigger": "oid", "pg_proc": "oid", "pg_type": "oid", "pg_statistic": "starelid",
}  # fmt: skip
"""System tables, and for each the column whose value separates our rows from the system's own."""
SHAPE = """
SELECT 'pg_class', count(*), sum(hashtextextended(
    concat(oid, relname, relnamespace, relkind, relowner, relpersistence, relacl, reloptions), 0
)) FROM pg_class WHERE oid >= 16384
UNION ALL SELECT 'pg_extension', count(*), sum(hashtextextended(concat(one), 0)) FROM pg_extension one
UNION ALL SELECT 'pg_db_role_setting', count(*), sum(hashtextextended(concat(setconfig), 0)) FROM pg_db_role_setting
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
""" + "".join(
    f"UNION ALL SELECT '{catalog}', count(*), sum(xmin::text::bigint) FROM {catalog} WHERE {column} >= 16384\n"
    for catalog, column in CATALOGS.items()
)
# A table whose file has length 0 has no rows, and has had none since it was created or truncated.
FILLED = """
SELECT relname FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
"""
# PostgreSQL counts what is written to each table, system tables too. A session adds its counts before it leaves
# pg_stat_activity. Reading them takes a tenth of the time of looking at every file and catalog. In a table that is
# empty in the template, only rows that a test has inserted can be updated or deleted.
WRITES = """
SELECT relname, pg_stat_get_tuples_inserted(oid) + CASE WHEN relname = ANY (%(full)s)
       THEN pg_stat_get_tuples_updated(oid) + pg_stat_get_tuples_deleted(oid) ELSE 0 END
FROM pg_class
WHERE relkind = 'r' AND (relnamespace = 'public'::regnamespace OR relname = ANY (%(full)s))
"""
# TRUNCATE creates new files, also for every table that refers to the truncated one. That takes fifty times as long as
# deleting a few rows.
LARGE = "SELECT relname FROM pg_class WHERE relname = ANY (%s) AND pg_relation_size(oid) > %s"
LARGE_BYTES = 128 * 2**10
SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"
COUNTED = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL"
AS_UNUSED = """
SELECT setval(quote_ident(sequencename)::regclass, first, false)
FROM pg_sequences JOIN unnest(%s::text[], %s::bigint[]) AS numbers (name, first) ON name = sequencename
WHERE schemaname = 'public' AND last_value IS NOT NULL
"""
# Ends the other connections that are still open, as DROP DATABASE … WITH (FORCE) does.
CUT_OFF = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


STATEMENTS = 5_000
"""Compiled statements that all engines of a process share."""


def compile_once() -> None:
    """Let all engines share compiled statements and what they found out about the server.

    All of them talk to the same kind of database. Every test has its own engine, and would otherwise spend a sixth of
    its time compiling the same statements again, and ask six questions about the server.
    """
    # Imported here, so that merely collecting tests does not load these modules.
    from sqlalchemy.dialects.postgresql.psycopg import PGDialectAsync_psycopg
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.util import LRUCache

    from models.db import database

    dialect = cast(Any, PGDialectAsync_psycopg)  # a part of each statement's key
    dialect.__eq__ = lambda one, other: type(one) is type(other)
    dialect.__hash__ = lambda one: hash(type(one))
    dialect.initialize = _once_per_version(dialect.initialize)
    shared = {"compiled_cache": LRUCache[object, object](STATEMENTS)}
    cast(Any, database).create_async_engine = partial(create_async_engine, execution_options=shared)


def _once_per_version(initialize: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Return an `initialize` that gives a dialect the attributes found by the first one at a server of that version."""
    found: dict[int, dict[str, object]] = {}

    def initialized(self: Any, connection: Any) -> None:
        version = connection.connection.driver_connection.info.server_version
        if version in found:
            vars(self).update(found[version])
            return
        before = dict(vars(self))
        initialize(self, connection)
        # `_type_memos` holds what a dialect derives from types, some of it from itself.
        found[version] = {
            name: value
            for name, value in vars(self).items()
            if name != "_type_memos" and (name not in before or before[name] is not value)
        }

    return initialized


class Databases:
    """One migrated database at a time on the server of `admin`, cloned from a template with all migrations applied.

    `url` is the address of any database of that server. Each test gets an account of its own: its name changes
    after the test, so that a late client of an earlier test finds no account. One connection stays open in the database
    to clean it, because a new one reads the system tables again, which takes longer than all the cleaning.
    """

    def __init__(self, admin: Session, url: str) -> None:
        self._admin, self._url = admin, url
        self._name: str | None = None
        self._account = _fresh_name()
        self._inside: Session | None = None
        self._writes: Writes = {}
        """What had been written to each table when the database was last clean."""
        # New statistics would make a database differ from the template.
        self._admin.execute("ALTER SYSTEM SET autovacuum = off")
        self._admin.execute("SELECT pg_reload_conf()")
        self._admin.execute(sql.SQL("CREATE ROLE {} SUPERUSER LOGIN").format(*_quoted(self._account)))
        # Tables have one owner, as in the product: PostgreSQL links no sequence to another account's table.
        self._admin.execute(sql.SQL("ALTER ROLE {} SET role = {}").format(*_quoted(self._account, admin.info.user)))
        with self._open(TEMPLATE) as template:
            self._filled = [name for name in _names(template, FILLED) if _rows(template, [name]) != [[]]]
            self._pristine = self._state(template)
            self._first = {name: _first_number(template, name) for name in _names(template, SEQUENCES)}
        self._shape = {"pg_class", "pg_extension", "pg_db_role_setting", *CATALOGS, *self._filled}

    def ready(self) -> str:
        """Return the address of a clean migrated database, with an account that no earlier test was given."""
        if self._name is None:
            self._name = _fresh_name()
            self._admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*_quoted(self._name, TEMPLATE)))
        return by(self._account, named(self._url, self._name))

    def clear(self) -> None:
        """End all connections and clean the database for the next test; drop it if that does not restore it."""
        account = _fresh_name()
        self._admin.execute(sql.SQL("ALTER ROLE {} RENAME TO {}").format(*_quoted(self._account, account)))
        self._account = account
        try:
            if not self._cleared():
                self.drop()
        except psycopg.OperationalError:  # a client that had connected just before, or the connection was ended
            self.drop()

    def drop(self) -> None:
        """Drop the database, if there is one."""
        if self._inside is not None:
            self._inside.close()
            self._inside, self._writes = None, {}
        if self._name is not None:
            self._admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(*_quoted(self._name)))
            self._name = None

    def _cleared(self) -> bool:
        """Empty the tables that were written to, and return whether the database is as it was in the beginning."""
        assert self._name is not None, "ready() comes first"
        if self._inside is None:
            self._inside = self._open(self._name)
            self._inside.execute("SET session_replication_role = 'replica'")  # no triggers, no foreign keys
        database = self._inside
        while database.execute(CUT_OFF).fetchone() != (0,):
            time.sleep(0.002)
        rows = database.execute(WRITES.encode(), {"full": list(self._shape)})
        writes = {str(name): int(str(count)) for name, count in rows}
        changed = {name for name, count in writes.items() if count != self._writes.get(name, 0)}
        large = list[str]()
        if written := sorted(changed - self._shape):
            if large := _names(database, LARGE, [written, LARGE_BYTES]):
                database.execute(sql.SQL("TRUNCATE {} CASCADE").format(sql.SQL(", ").join(_quoted(*large))))
            database.execute(sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(*_quoted(one)) for one in written))
        database.execute(AS_UNUSED.encode(), [list(self._first), list(self._first.values())])
        self._writes = writes
        if not large and not changed & self._shape and self._shape <= writes.keys():
            return True
        return self._state(database) == self._pristine

    def _open(self, name: str) -> Session:
        return psycopg.connect(plain(self._url), dbname=name, autocommit=True, options="-c lock_timeout=10s")

    def _state(self, database: Session) -> tuple[object, ...]:
        """Return the state of the database, except the rows of tables that are empty in the template."""
        return database.execute(SHAPE.encode()).fetchall(), _rows(database, self._filled), _names(database, COUNTED)


def plain(url: str) -> str:
    """Return the address in the form that psycopg itself takes."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


def named(url: str, database: str) -> str:
    """Return the address of another database of the same server."""
    return re.sub(r"/holdfast\?", f"/{database}?", url, count=1)


def by(account: str, url: str) -> str:
    """Return the address with another account."""
    return re.sub(r"//[^/@]*@", f"//{account}@", url, count=1)


def _fresh_name() -> str:
    return f"t_{uuid.uuid4().hex[:12]}"


def _names(database: Session, query: str, values: list[Any] | None = None) -> list[str]:
    return [str(name) for (name,) in database.execute(query.encode(), values)]


def _rows(database: Session, tables: list[str]) -> list[object]:
    """Return the rows of each of these tables."""
    return [sorted(map(str, database.execute(sql.SQL("SELECT * FROM {}").format(*_quoted(name))))) for name in tables]


def _first_number(database: Session, sequence: str) -> object:
    """Return the number that an unused sequence gives first."""
    (row,) = database.execute(sql.SQL("SELECT last_value FROM {}").format(*_quoted(sequence))).fetchall()
    return row[0]


def _quoted(*names: str) -> list[sql.Identifier]:
    return [sql.Identifier(name) for name in names]
