"""Move all tables of a database to a separate schema, so that a backup can take their place."""

import psycopg
from psycopg.sql import SQL, Identifier

from models.db.lost_connections import parameters
from setting_checks import libpq_url


def has_tables(url: str) -> bool:
    """Return whether the database at this URL has any tables."""
    with psycopg.connect(libpq_url(url), **parameters(libpq_url(url))) as connection:
        found = connection.execute("SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = 'public')").fetchone()
    return bool(found and found[0])


def moving_aside(schema: str) -> str:
    """Return the SQL that moves the present tables to this schema, which leaves the database empty."""
    moves = SQL("ALTER SCHEMA public RENAME TO {}; CREATE SCHEMA public;").format(Identifier(schema))
    return moves.as_string()
