"""Startup and shutdown of a web process: finds or starts the other processes, and closes connections at the end."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from app.http.shutdown import Leaving
from app.http.sockets.left_tabs import dropping
from app.provider_state_writer import noting
from app.supervisor.companions import start_if_alone
from gateways import close_gateways
from models import limit_statements, use
from services.runtime import garbage_collection, logs, rate_limits

SCREEN_STATEMENT_SECONDS = 20.0
"""Longest time for one database statement of a screen or a call; after it the caller gets an error."""


@asynccontextmanager
async def lifespan() -> AsyncGenerator[None]:
    """Run the rest of the product while the block lasts, started here if no supervisor runs."""
    garbage_collection.freeze()
    logs.note_start("web")
    limit_statements(SCREEN_STATEMENT_SECONDS)
    async with start_if_alone() as database_url:
        if database_url is not None:
            os.environ["DATABASE_URL"] = database_url
            await use(database_url)
        try:
            with Leaving.on_signals():
                async with noting(), dropping():
                    yield
        finally:
            await rate_limits.forget()
            await close_gateways()
            await use(None)
