"""A counter of the statements that are sent to the database."""

from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import patch

from psycopg import AsyncCursor

from models.db import clock


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
