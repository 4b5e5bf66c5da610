"""Fixtures that run the engine in this process, on the test's own database and the test run's sandbox."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import models
from gateways import close_gateways
from jobs.reconciler import Reconciler
from jobs.role_writer import RoleWriter
from services.core.queue import CHANNEL, worker_names
from services.roles.outbox import INTENT_CHANNEL
from services.runtime.postgres_listen import Listener
from services.runtime.task_cancellation import stop
from settings import settings
from tests.jobs.town import Town, a_town

Engine = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture
async def product(
    database_url: str, sandbox_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[None]:
    """This process set up as one of the product's, with the sandbox in place of the outside world."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("SANDBOX_PORT", str(urlsplit(sandbox_url).port))
    for name in ("PORT", "PUBLIC_URL"):
        monkeypatch.delenv(name, raising=False)
    settings.cache_clear()
    await close_gateways()  # a test without a sandbox may have left gateways that lead nowhere
    await models.use(database_url)
    yield
    await close_gateways()
    await models.use(None)
    settings.cache_clear()


@pytest.fixture
def engine(product: None) -> Engine:
    """A context manager that runs the reconciler and the role writer."""

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        due_called, intent_called = asyncio.Event(), asyncio.Event()
        reconciler = Reconciler(due_called)
        tasks = [
            asyncio.create_task(part.run())
            for part in (
                Listener({CHANNEL: due_called, INTENT_CHANNEL: intent_called}),
                reconciler,
                RoleWriter(intent_called),
            )
        ]
        try:
            yield
        finally:
            await stop(*tasks)
            # As if its process had ended, so that a second engine takes over its claims at once.
            worker_names._OURS.discard(reconciler.name)

    return running


@pytest.fixture
async def town(product: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A fresh guild owned by ada, with carol and dave as members; faults are cleared before and after."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        yield made
