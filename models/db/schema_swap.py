"""Move all tables of a database to a separate schema, so that a backup can take their place."""

import psycopg
from psycopg.sql import SQL, Identifier

from models.db.database import libpq_url
from models.db.lost_connections import parameters


def has_tables(url: str) -> bool:
    """Return whether the database at this URL has any tables."""
    with psycopg.connect(libpq_url(url), **parameters(libpq_url(url))) as connection:
        found = connection.execute("SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = 'public')").fetchone()
    return bool(found and found[0])


def put_aside(url: str, schema: str) -> None:
    """Move the present tables to this schema, which leaves the database empty."""
    with psycopg.connect(libpq_url(url), **parameters(libpq_url(url))) as connection:
        connection.execute(SQL("ALTER SCHEMA public RENAME TO {}").format(Identifier(schema)))
        connection.execute("CREATE SCHEMA public")


def put_back(url: str, schema: str) -> None:
    """Undo `put_aside` and drop everything added since. Do nothing if that schema does not exist."""
    with psycopg.connect(libpq_url(url), **parameters(libpq_url(url))) as connection:
        if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone():
            return
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute(SQL("ALTER SCHEMA {} RENAME TO public").format(Identifier(schema)))
