"""The version of the database's tables: the number of the newest migration."""

import psycopg

from models.db.lost_connections import WatchedConnection


async def read(connection: WatchedConnection) -> str | None:
    """Return the number that an autocommit connection's database has; empty without tables, None if we may not ask."""
    try:
        row = await (await connection.execute("SELECT max(version_num) FROM alembic_version")).fetchone()
    except psycopg.errors.UndefinedTable:
        return ""
    except psycopg.errors.InsufficientPrivilege:
        return None
    return str(row[0] or "") if row else ""
