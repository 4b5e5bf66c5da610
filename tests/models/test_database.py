"""The way to the database: what the pool hands out, and what a question costs."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from sqlalchemy import text

import models
from models import SpentTransaction, libpq_url, reading, transaction


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[str]:
    """A migrated database of this test's own, which the process works with."""
    await models.use(database_url)
    yield database_url
    await models.use(None)


async def backend() -> int:
    """The process that answers at the other end of a connection."""
    async with transaction() as db:
        return (await db.execute(text("SELECT pg_backend_pid()"))).scalar_one()


async def test_a_connection_that_the_server_has_ended_is_not_handed_out(database: str) -> None:
    first = await backend()
    assert await backend() == first, "the pool keeps it"
    with psycopg.connect(libpq_url(database), autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
    assert await backend() != first


async def test_a_question_opens_no_transaction_and_sees_what_is_committed_meanwhile(database: str) -> None:
    async with reading() as db:
        assert (await db.execute(text("SELECT count(*) FROM spent_transaction"))).scalar_one() == 0
        with psycopg.connect(libpq_url(database), autocommit=True) as other:
            idle = other.execute("SELECT state FROM pg_stat_activity WHERE query LIKE 'SELECT count%spent%'").fetchall()
            other.execute("INSERT INTO spent_transaction (hash, chain, spent_at) VALUES ('a', 'base', now())")
        assert idle == [("idle",)]
        assert (await db.execute(text("SELECT count(*) FROM spent_transaction"))).scalar_one() == 1
    async with transaction() as db:  # the same connection: what it writes is undone when it fails
        db.add(SpentTransaction(hash="b", chain="base"))
        await db.flush()
        await db.rollback()
    async with reading() as db:
        assert (await db.execute(text("SELECT count(*) FROM spent_transaction"))).scalar_one() == 1
