"""Check that the product may make and change its tables in a database, and which version made them."""

from dataclasses import dataclass

from sqlmodel import SQLModel

from models.db import schema_version
from models.db.lost_connections import WatchedConnection
from setting_checks import libpq_url

_QUESTION = """
    SELECT current_user, current_setting('transaction_read_only') = 'on',
           COALESCE(has_schema_privilege(CAST(to_regnamespace('public') AS oid), 'CREATE'), false),
           EXISTS (SELECT FROM pg_tables WHERE schemaname = 'public' AND tablename = ANY(%s)
                   AND NOT pg_has_role(tableowner, 'USAGE')),
           current_setting('server_encoding')
"""


@dataclass(frozen=True, slots=True)
class DatabaseRights:
    """What a database lets `account` do, and how it stores texts."""

    account: str
    read_only: bool
    makes_tables: bool
    others_tables: bool
    """Whether some of the product's tables belong to an account whose rights this one does not have."""
    encoding: str
    migration: str
    """The number of the newest migration that the database has; empty if it has none, or none that we may read."""


async def read(url: str) -> DatabaseRights:
    """Ask the database at this URL. Raises psycopg.Error."""
    async with await WatchedConnection.connect(libpq_url(url), autocommit=True) as connection:
        # An extension or another program may have tables there too.
        row = await (await connection.execute(_QUESTION, ([*SQLModel.metadata.tables, "alembic_version"],))).fetchone()
        assert row is not None
        migration = await schema_version.read(connection) or ""
    return DatabaseRights(*row, migration=migration)
