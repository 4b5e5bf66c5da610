"""How alembic reaches our database: over the product's own engine, leaving the job queue's schema alone."""

import asyncio
import os

from alembic import context
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlmodel import SQLModel

import models
from models.database import psycopg_url


def _run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=SQLModel.metadata, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()


async def _migrate() -> None:
    url = os.environ.get("DATABASE_URL")
    if not url:
        raise models.DatabaseUrlMissing("DATABASE_URL is not set.")
    engine = create_async_engine(psycopg_url(url))
    async with engine.connect() as connection:
        await connection.run_sync(_run)
    await engine.dispose()


asyncio.run(_migrate())
