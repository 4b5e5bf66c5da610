"""A database without one of its triggers: what they keep is then wrong, and a test of it has to notice."""

from collections.abc import AsyncGenerator

from sqlalchemy import text

from models import transaction

_FOUND = """
SELECT tgname, CAST(CAST(tgrelid AS regclass) AS text), pg_get_triggerdef(oid) FROM pg_trigger
WHERE NOT tgisinternal AND tgparentid = 0 AND tgname LIKE :name ORDER BY tgname
"""


async def each_missing(prefix: str) -> AsyncGenerator[str]:
    """The name of each trigger whose name begins so; it is gone until the next one is asked for."""
    async with transaction() as db:
        found = (await db.execute(text(_FOUND), {"name": prefix.replace("_", r"\_") + "%"})).all()
    assert found
    for name, table, definition in found:
        async with transaction() as db:
            await db.execute(text(f"DROP TRIGGER {name} ON {table}"))
        yield name
        async with transaction() as db:
            await db.execute(text(definition))
