"""Bot and jobs wait for the migrations of their version."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from services.health import readiness
from setting_checks import libpq_url
from settings import settings


def version(url: str, number: str) -> str:
    """Write the number of the newest migration into the database; return the number from before."""
    with psycopg.connect(libpq_url(url), autocommit=True) as admin:
        before = admin.execute("SELECT version_num FROM alembic_version").fetchone()
        admin.execute("UPDATE alembic_version SET version_num = %s", [number])
    assert before is not None
    return str(before[0])


@pytest.fixture
def asked(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The database that the settings name."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setattr(readiness, "ASKED_EVERY", 0.01)
    settings.cache_clear()
    yield database_url
    settings.cache_clear()


async def test_an_older_database_is_waited_for_with_what_to_do(asked: str, caplog: pytest.LogCaptureFixture) -> None:
    newest = version(asked, "0001")
    try:
        waiting = asyncio.create_task(readiness.until_migrated())
        while readiness.TOO_OLD not in caplog.messages:
            assert not waiting.done()
            await asyncio.sleep(0.01)
    finally:
        version(asked, newest)
    await waiting


async def test_a_newer_database_is_used_since_versions_may_share_one(asked: str) -> None:
    newest = version(asked, "9999")
    try:
        await readiness.until_migrated()
    finally:
        version(asked, newest)


async def test_a_database_that_does_not_answer_is_left_to_those_who_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    settings.cache_clear()
    try:
        await readiness.until_migrated()
    finally:
        settings.cache_clear()
