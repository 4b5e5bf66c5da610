"""A database without one of its triggers: the counts that triggers keep are then wrong, and a test has to notice."""

from collections.abc import AsyncGenerator

from sqlalchemy import text

from models import transaction

_FOUND = """
SELECT tgname, CAST(CAST(tgrelid AS regclass) AS text), pg_get_triggerdef(oid) FROM pg_trigger
WHERE NOT tgisinternal AND tgparentid = 0 AND tgname LIKE :name ORDER BY tgname
"""


async def each_missing(prefix: str) -> AsyncGenerator[str]:
    """Drop each trigger whose name begins with `prefix` and yield its name; restore it before the next one."""
    async with transaction() as db:
        found = (await db.execute(text(_FOUND), {"name": prefix.replace("_", r"\_") + "%"})).all()
    assert found
    for name, table, definition in found:
        async with transaction() as db:
            await db.execute(text(f"DROP TRIGGER {name} ON {table}"))
        yield name
        async with transaction() as db:
            await db.execute(text(definition))
