"""A log whose months began long ago, for tests that cannot wait for a month to pass."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import text

from models.db.session import AsyncSession


def month(back: int) -> date:
    """The first day of the month so many months before this one."""
    today = datetime.now(UTC).date()
    year, number = divmod(today.year * 12 + today.month - 1 - back, 12)
    return date(year, number + 1, 1)


async def months_since(db: AsyncSession, back: int) -> None:
    """Give each of the last `back` months its partition, in place of the empty one of the lines of before."""
    await db.execute(text("DROP TABLE event_before"))
    for one in range(back, 0, -1):
        name = f"event_{month(one):%Y_%m}"
        await db.execute(text(f"CREATE TABLE {name} (LIKE event INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"))
        await db.execute(
            text(
                f"ALTER TABLE event ATTACH PARTITION {name} FOR VALUES "
                f"FROM ({first_id(month(one))}) TO ({first_id(month(one - 1))})"
            )
        )


def first_id(first: date) -> int:
    """The first id of a month."""
    return (first.year * 100 + first.month) * 10**9


def middle(back: int) -> datetime:
    """A moment in the middle of that month."""
    return datetime.combine(month(back), datetime.min.time(), UTC) + timedelta(days=14)
