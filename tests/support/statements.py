"""What a test sees of the database's work: how many statements it gets, and whether one waits for a lock."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import patch

from psycopg import AsyncCursor
from sqlalchemy import text

from models import transaction
from models.db import clock
from models.db.session import AsyncSession


class Statements:
    """Counts the statements of this process while the block lasts, whichever way they are sent.

    A statement that runs for many rows counts once. BEGIN, COMMIT and the query for the time do not count.
    """

    def __init__(self) -> None:
        self.count = 0
        self._patches = [
            patch.object(AsyncCursor, name, self._counted(getattr(AsyncCursor, name)))
            for name in ("execute", "executemany")
        ]

    def _counted(self, run: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*arguments: Any, **options: Any) -> Any:
            self.count += arguments[1] != clock.QUESTION
            return await run(*arguments, **options)

        return counted

    def __enter__(self) -> "Statements":
        for one in self._patches:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._patches:
            one.stop()


Step = Callable[[AsyncSession], Awaitable[object]]
"""A part of a transaction."""


async def meet(step: Step, has: Step, needs: Step) -> None:
    """Begin a transaction with `has`, do `step` in another one until it waits for that, and do what the first needs."""

    async def done() -> None:
        async with transaction() as db:
            # As for large tables, which are read in their own order: an index of small ones gives the keys in theirs.
            for way in ("indexscan", "indexonlyscan", "bitmapscan", "nestloop", "mergejoin"):
                await db.execute(text(f"SET LOCAL enable_{way} = off"))
            await step(db)

    async with transaction() as db:
        await has(db)
        doing = asyncio.create_task(done())
        await until_it_waits(doing)
        await needs(db)
    await doing


async def until_it_waits(task: asyncio.Task[Any]) -> None:
    """Return once the task waits for a lock in the database."""
    async with asyncio.timeout(60):
        while not await waits_for_a_lock():
            assert not task.done(), task
            await asyncio.sleep(0.01)


async def until_one_waits() -> None:
    """Return once a connection to the test's database waits for a lock."""
    async with asyncio.timeout(60):
        while not await waits_for_a_lock():
            await asyncio.sleep(0.01)


async def waits_for_a_lock() -> bool:
    """Return whether a connection to the test's database waits for a lock.

    Each look has a transaction of its own, because PostgreSQL shows all looks of a transaction what the first one saw.
    """
    async with transaction() as db:
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return (await db.execute(text(waiting))).first() is not None
