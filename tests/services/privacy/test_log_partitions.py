"""The log's monthly partitions: expired ones are dropped whole, future ones exist in advance, and the counts stay."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count

import psycopg
import pytest
from sqlalchemy import text
from sqlmodel import col, select

from jobs import scheduler
from models import Event, User, Wallet, now, transaction
from models.db.session import AsyncSession
from services.core import audit, rollups
from services.core.actors import Actor
from services.privacy import erasure, log_partitions, retention
from services.servers import activity, verified_counts
from services.servers.activity import LogFilter
from setting_checks import libpq_url
from settings import settings
from tests.models.log_months import first_id, middle, month, months_since
from tests.services.privacy.test_export import exported
from tests.support.builders import a_member, a_server, address

pytestmark = pytest.mark.usefixtures("database")
PARTITIONS = "SELECT name FROM event_partitions()"


async def partitions() -> list[str]:
    async with transaction() as db:
        return [str(name) for (name,) in (await db.execute(text(PARTITIONS))).all()]


async def kinds() -> list[str]:
    async with transaction() as db:
        return list((await db.exec(select(Event.kind).order_by(col(Event.id)))).all())


async def a_line(db: AsyncSession, back: int, at: datetime | None = None, **fields: object) -> None:
    """Store a line of the month `back` months ago, with an id of that month."""
    number = next(_numbers)
    line = {"id": first_id(month(back)) + number, "at": at or middle(back), "kind": f"back.{back}"} | fields
    db.add(Event.model_validate(line | {"data": {}}))
    await db.flush()


_numbers = count(1)


@pytest.fixture
def kept_for(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """A function that sets how many days the log is kept."""

    def to(days: int) -> None:
        monkeypatch.setenv("LOG_DAYS", str(days))
        settings.cache_clear()

    yield to
    settings.cache_clear()


async def turn() -> None:
    """Run the job once, as the clock does."""
    async with transaction() as db:
        await log_partitions.maintain_one_step(db)


async def test_the_months_that_are_past_go_whole_and_of_the_one_at_the_limit_the_lines_that_are_past(
    kept_for: Callable[[int], None],
) -> None:
    kept_for(90)
    limit = now() - timedelta(days=90)
    at_limit = next(back for back in range(2, 6) if middle(back).month == limit.month)
    async with transaction() as db:
        await months_since(db, 13)
        for back in range(13, -1, -1):
            if back != at_limit:
                await a_line(db, back)
        await a_line(db, at_limit, limit - timedelta(minutes=1), kind="just past")
        await a_line(db, at_limit, limit + timedelta(minutes=1), kind="just kept")
    before = await partitions()
    async with transaction() as db:
        assert await retention.clear_log(db, 90) == 1, "whole months are not deleted line by line"
    kept = [f"back.{back}" for back in range(at_limit - 1, -1, -1)]
    assert [kind for kind in await kinds() if kind not in kept] == [
        *(f"back.{back}" for back in range(13, at_limit, -1)), "just kept",
    ]  # fmt: skip
    for gone in range(1, 13 - at_limit + 1):
        await turn()
        assert await partitions() == before[gone:]
    await turn()
    assert await partitions() == before[13 - at_limit :], "not the month in which a line is kept"
    assert await kinds() == ["just kept", *kept]


async def test_a_log_that_is_kept_forever_loses_no_month(kept_for: Callable[[int], None]) -> None:
    kept_for(0)
    async with transaction() as db:
        await months_since(db, 3)
        await a_line(db, 3, middle(60))
    before = await partitions()
    await turn()
    assert await partitions() == before
    assert len(await kinds()) == 1


async def test_a_line_that_is_newer_than_its_month_keeps_it(kept_for: Callable[[int], None]) -> None:
    kept_for(30)
    async with transaction() as db:
        await months_since(db, 4)
        for back in (4, 3):
            await a_line(db, back)
        await a_line(db, 3, now(), kind="newer")
        await a_line(db, 3)
    before = await partitions()
    async with transaction() as db:
        assert await retention.clear_log(db, 30) == 2, "of the month that stays"
    for _ in range(3):
        await turn()
    assert await partitions() == [before[1], *before[3:]], "the months around it go"
    assert await kinds() == ["newer"]


async def test_the_counts_stay_as_they_are_when_a_month_goes(kept_for: Callable[[int], None]) -> None:
    async with transaction() as db:
        await months_since(db, 4)
        server = await a_server(db)
        server_id = server.id or 0
        member = await a_member(db, server, wallet=address())
        for back in (4, 1):
            await a_line(db, back, kind="role.given", server_id=server_id, subject=member.discord_id)
            await a_line(db, back, kind="wallet.proved", subject=member.discord_id)
        await rollups.fold(db)
        await verified_counts.fold(db)
    given = "SELECT day, total FROM rollup WHERE kind = 'role.given' ORDER BY day"
    proofs = "SELECT unnest(proved_on) FROM verified_person ORDER BY 1"
    async with transaction() as db:
        assert (await db.execute(text(given))).all() == [(middle(4).date(), 1), (middle(1).date(), 1)]
        assert (await db.execute(text(proofs))).all() == [(middle(4).date(),), (middle(1).date(),)]
    kept_for(80)
    await turn()
    assert f"event_{month(4):%Y_%m}" not in await partitions()
    async with transaction() as db:
        await rollups.fold(db)
        await verified_counts.fold(db)
        assert (await db.execute(text(given))).all() == [(middle(4).date(), 1), (middle(1).date(), 1)]
        # As when the lines are deleted one by one: the day of a proof is known as long as its line exists.
        assert (await db.execute(text(proofs))).all() == [(middle(1).date(),)]


async def test_each_line_is_counted_once_whatever_month_it_is_of() -> None:
    async with transaction() as db:
        await months_since(db, 2)
        for back in (2, 2, 1, 0):
            await a_line(db, back, kind="role.given")
        await db.execute(
            text(
                "INSERT INTO event (id, at, kind, data) SELECT n, now(), 'role.taken', '{}' "
                "FROM unnest(CAST(:ids AS bigint[])) n"
            ),
            {"ids": [first_id(month(back)) + 10_000 for back in (2, 1, 0)]},
        )
        await rollups.fold(db)
        found = await db.execute(text("SELECT kind, sum(total) FROM rollup GROUP BY 1 ORDER BY 1"))
        assert found.all() == [("role.given", 4), ("role.taken", 3)]


async def test_a_line_of_any_time_is_taken_and_the_months_to_come_have_their_place() -> None:
    async with transaction() as db:
        for at in ("0900-01-01", "1970-01-01", "2999-12-31T23:59:59", "9999-12-31"):
            line = audit.line("rule.created", data={}) | {"at": f"{at}Z" if "T" in at else at}
            await audit.record(db, line)
        ids = list((await db.exec(select(Event.id).order_by(col(Event.id)))).all())
    assert ids == [first_id(month(0)) + number for number in range(4)]
    assert (await partitions())[1:] == [f"event_{month(-ahead):%Y_%m}" for ahead in range(log_partitions.AHEAD + 1)]


async def test_months_are_created_ahead_and_ids_go_on_with_the_month_that_has_begun() -> None:
    async with transaction() as db:
        await months_since(db, 2)
        for ahead in range(log_partitions.AHEAD + 1):
            await db.execute(text(f"DROP TABLE event_{month(-ahead):%Y_%m}"))
        await db.execute(text(f"SELECT setval('event_id_seq', {first_id(month(1)) + 77}, true)"))
        await audit.record(db, audit.line("rule.created"))
    await turn()
    async with transaction() as db:
        await audit.record(db, audit.line("rule.deleted"))
        ids = list((await db.exec(select(Event.id).order_by(col(Event.id)))).all())
    assert ids == [first_id(month(1)) + 78, first_id(month(0))]
    assert (await partitions())[2:] == [f"event_{month(-ahead):%Y_%m}" for ahead in range(log_partitions.AHEAD + 1)]
    before = await partitions()
    await turn()
    assert await partitions() == before
    async with transaction() as db:
        await audit.record(db, audit.line("rule.paused"))
        assert (await db.exec(select(Event.id).order_by(col(Event.id).desc()))).first() == first_id(month(0)) + 1


async def test_no_month_is_dropped_while_somebody_reads_the_log(database: str, kept_for: Callable[[int], None]) -> None:
    kept_for(30)
    async with transaction() as db:
        await months_since(db, 3)
        await a_line(db, 3)
    before = await partitions()
    async with await psycopg.AsyncConnection.connect(libpq_url(database)) as reader:
        await reader.execute("SELECT count(*) FROM event")
        await turn()
        assert await partitions() == before
    await turn()
    assert await partitions() == before[1:]


async def test_the_scheduler_has_the_job() -> None:
    (job,) = (one for one in scheduler.all_jobs() if one.name == log_partitions.SCHEDULE)
    assert job.work == log_partitions.maintain_one_step
    assert job.every == scheduler.HOUSEKEEPING_EVERY


async def test_somebody_is_forgotten_exported_and_paged_over_all_months() -> None:
    async with transaction() as db:
        await months_since(db, 5)
        server = await a_server(db)
        server_id = server.id or 0
        user = User(discord_id="77", username="x")
        db.add(user)
        await db.flush()
        db.add(Wallet(user_id=user.id or 0, family="evm", address=address(), method="opensea_bio"))
        for back in range(5, -1, -1):
            await a_line(db, back, kind="wallet.proved", server_id=server_id, subject="77")
            await a_line(db, back, kind="rule.created", server_id=server_id, actor="77")
            await a_line(db, back, kind="role.given", server_id=server_id, subject="78")
        actor = Actor(user.id or 0, "77", "x")
        told = (await exported(db, actor))["events"]
        assert [one["kind"] for one in told] == ["wallet.proved", "rule.created"] * 6
    for since, until, months in ((None, None, 6), (middle(3), None, 4), (middle(3), middle(1), 2)):
        pages: list[int] = []
        async with transaction() as db:
            wanted = LogFilter(since=since, until=until)
            page = await activity.lines(db, server_id, wanted, limit=4)
            while page:
                pages += [one.id for one in page]
                page = await activity.lines(db, server_id, wanted, before=page[-1].id, limit=4)
        assert len(pages) == 3 * months
        assert pages == sorted(set(pages), reverse=True)
    async with transaction() as db:
        await erasure.forget(db, actor)
    for _ in range(3):
        async with transaction() as db:
            await erasure.finish(db)
    async with transaction() as db:
        found = (await db.exec(select(Event.subject, Event.actor).where(col(Event.kind) != "member.forgotten"))).all()
    (pseudonym,) = {one for pair in found for one in pair if one is not None} - {"78"}
    assert pseudonym.startswith("forgotten-")
    assert sorted(found, key=str) == sorted([("78", None), (pseudonym, None), (None, pseudonym)] * 6, key=str)
