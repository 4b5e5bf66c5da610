"""The answer to a person when the database works on one statement for too long."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy.exc import OperationalError

import models
from app.api.requests import problems
from models import AsyncSession, limit_statements, transaction
from services.core.errors import QuestionTimedOut, explained
from state.core import retry
from state.core.errors import show_fault


@pytest.fixture
async def hasty(database_url: str) -> AsyncIterator[None]:
    """A process whose statements may take at most a tenth of a second."""
    limit_statements(0.1)
    await models.use(database_url)
    yield
    await models.use(None)
    limit_statements(None)


async def something_long() -> None:
    async with transaction() as db:
        await db.execute("SELECT pg_sleep(60)")


@pytest.mark.usefixtures("hasty")
async def test_a_call_that_takes_too_long_says_so() -> None:
    api = FastAPI()
    problems.answer_for(api)
    api.get("/long")(something_long)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://here") as client:
        answer = await client.get("/long")
    assert answer.status_code == 503
    assert "took too long" in answer.json()["message"]
    assert answer.headers["retry-after"] == "60"


@pytest.mark.usefixtures("hasty")
async def test_a_screen_that_takes_too_long_says_so_and_does_not_ask_twice() -> None:
    asked = 0

    async def read(db: AsyncSession) -> None:
        nonlocal asked
        asked += 1
        await db.execute("SELECT pg_sleep(60)")

    with pytest.raises(OperationalError) as caught:
        await retry.ask(read)
    assert asked == 1
    assert isinstance(explained(caught.value), QuestionTimedOut)
    assert "took too long" in str(show_fault(caught.value))
