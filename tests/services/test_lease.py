"""The writer's lease: one process has it, and only a connection that still holds it answers."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from models import transaction
from services.lease import KEY, LeaseLost, lease
from settings import settings

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def address(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("DATABASE_URL", database_url)
        settings.cache_clear()
        yield
    settings.cache_clear()


async def test_one_has_it_and_the_next_gets_it_when_they_let_go() -> None:
    async with lease() as first, lease() as second:
        assert first is not None
        assert second is None
        assert await first.ask(("SELECT CAST(:number AS integer)", {"number": 7})) == [(7,)]
    async with lease() as third:
        assert third is not None


async def test_whose_connection_is_gone_gets_no_answer() -> None:
    async with lease() as held:
        assert held is not None
        async with transaction() as db:
            of_ours = text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND objid = :low "
                "AND classid = :high AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            await db.execute(of_ours, {"low": KEY % 2**32, "high": KEY // 2**32})
        with pytest.raises(LeaseLost):
            await held.ask(("SELECT 1", {}))
        async with lease() as other:
            assert other is not None, "and somebody else may write by now"
