"""The migrated database that tests get one after another: what a test wrote is cleared away behind it.

A clone of the template is some six hundred new files, which take up to a third of a second where files come and go all
the time, and hundreds of tests ask for one; what a test writes is in a handful of tables. A database that is not
exactly as it was once they are empty again is thrown away.
"""

import re
import time
import uuid
from functools import partial
from typing import Any, cast

import psycopg
from psycopg import Connection, errors, sql

Session = Connection[tuple[object, ...]]

TEMPLATE = "template_holdfast"

# Whatever a test can leave behind besides rows: tables, columns, constraints, triggers, functions, settings, and what
# the planner has learned. What TRUNCATE changes by itself (a table's file, size and age) is left out. A catalog's row
# has the number of the transaction that wrote it, and numbers only grow: as many rows with the same sum are the same.
CATALOGS = {
    "pg_attribute": "attrelid", "pg_attrdef": "adrelid", "pg_constraint": "oid", "pg_index": "indrelid",
    "pg_trigger": "oid", "pg_proc": "oid", "pg_type": "oid", "pg_statistic": "starelid",
}  # fmt: skip
"""Tables of the system, and the column by which a row is not the system's own."""
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
# A table without a file's length has no rows, nor had any since it was made or emptied.
WRITTEN = """
SELECT relname FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0 AND relname <> ALL (%s)
"""
# To truncate makes new files, also of all that refers to a table: fifty times what it takes to delete a few rows.
LARGE = "SELECT relname FROM pg_class WHERE relname = ANY (%s) AND pg_relation_size(oid) > %s"
LARGE_BYTES = 128 * 2**10
SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"
COUNTED = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL"
# Whoever is still connected is cut off, as by DROP DATABASE … WITH (FORCE).
CUT_OFF = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s"


STATEMENTS = 5_000
"""Compiled statements that all engines of a process share."""


def compile_once() -> None:
    """Let each engine use what an earlier one has compiled, for all of them speak to the same kind of database.

    Every test has an engine of its own, and would spend a sixth of its time on statements compiled before.
    """
    # Nobody reads these who only collects tests.
    from sqlalchemy.dialects.postgresql.psycopg import PGDialectAsync_psycopg
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.util import LRUCache

    from models.db import database

    dialect = cast(Any, PGDialectAsync_psycopg)  # a part of each statement's key
    dialect.__eq__ = lambda one, other: type(one) is type(other)
    dialect.__hash__ = lambda one: hash(type(one))
    shared = {"compiled_cache": LRUCache[object, object](STATEMENTS)}
    cast(Any, database).create_async_engine = partial(create_async_engine, execution_options=shared)


class Databases:
    """One migrated database at a time in the server of `admin`, whose template has all migrations applied.

    `url` is the address of any database of that server.
    """

    def __init__(self, admin: Session, url: str) -> None:
        self._admin, self._url = admin, url
        self._name: str | None = None
        with self._open(TEMPLATE) as template:
            self._filled = [name for name in _names(template, WRITTEN, [[]]) if _rows(template, [name]) != [[]]]
            self._pristine = self._state(template)
            self._first = {name: _first_number(template, name) for name in _names(template, SEQUENCES)}

    def ready(self) -> str:
        """The address of a migrated database in which nobody has written; nobody has ever been told of it."""
        if self._name is None:
            self._name = _fresh_name()
            self._admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*_quoted(self._name, TEMPLATE)))
        return named(self._url, self._name)

    def clear(self) -> None:
        """Cut everybody off and make it ready for somebody else; throw it away where it stays another one."""
        try:
            if not self._cleared():
                self.drop()
        except (errors.ObjectInUse, errors.LockNotAvailable):  # somebody came back at once
            self.drop()

    def drop(self) -> None:
        """Throw the database away, if there is one."""
        if self._name is not None:
            self._admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(*_quoted(self._name)))
            self._name = None

    def _cleared(self) -> bool:
        """Empty what was written in; whether it is as it was in the beginning."""
        assert self._name is not None, "ready() comes first"
        while self._admin.execute(CUT_OFF, [self._name]).fetchone() != (0,):
            time.sleep(0.002)
        # Under another name, so that whoever comes back late from an earlier test finds nothing.
        name = _fresh_name()
        self._admin.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*_quoted(self._name, name)))
        self._name = name
        with self._open(self._name) as database:
            if written := _names(database, WRITTEN, [self._filled]):
                if large := _names(database, LARGE, [written, LARGE_BYTES]):
                    database.execute(sql.SQL("TRUNCATE {} CASCADE").format(sql.SQL(", ").join(_quoted(*large))))
                database.execute("SET session_replication_role = 'replica'")  # no triggers, no foreign keys
                database.execute(sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(*_quoted(one)) for one in written))
            for name in _names(database, COUNTED):
                database.execute("SELECT setval(quote_ident(%s)::regclass, %s, false)", [name, self._first[name]])
            return self._state(database) == self._pristine

    def _open(self, name: str) -> Session:
        return psycopg.connect(plain(self._url), dbname=name, autocommit=True, options="-c lock_timeout=10s")

    def _state(self, database: Session) -> tuple[object, ...]:
        """Everything but the rows of tables that begin empty."""
        return database.execute(SHAPE.encode()).fetchall(), _rows(database, self._filled), _names(database, COUNTED)


def plain(url: str) -> str:
    """The address as psycopg itself takes it."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


def named(url: str, database: str) -> str:
    """The address of another database of the same server."""
    return re.sub(r"/holdfast\?", f"/{database}?", url, count=1)


def _fresh_name() -> str:
    return f"t_{uuid.uuid4().hex[:12]}"


def _names(database: Session, query: str, values: list[Any] | None = None) -> list[str]:
    return [str(name) for (name,) in database.execute(query.encode(), values)]


def _rows(database: Session, tables: list[str]) -> list[object]:
    """What these tables hold."""
    return [sorted(map(str, database.execute(sql.SQL("SELECT * FROM {}").format(*_quoted(name))))) for name in tables]


def _first_number(database: Session, sequence: str) -> object:
    """The number that a sequence nobody has asked yet will give."""
    (row,) = database.execute(sql.SQL("SELECT last_value FROM {}").format(*_quoted(sequence))).fetchall()
    return row[0]


def _quoted(*names: str) -> list[sql.Identifier]:
    return [sql.Identifier(name) for name in names]
