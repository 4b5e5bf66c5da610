"""A log whose months began long ago, for tests that cannot wait a month."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import text

from models.db.session import AsyncSession


def month(back: int) -> date:
    """Return the first day of the month so many months ago."""
    today = datetime.now(UTC).date()
    year, number = divmod(today.year * 12 + today.month - 1 - back, 12)
    return date(year, number + 1, 1)


async def months_since(db: AsyncSession, back: int) -> None:
    """Create a partition for each of the last `back` months, in place of the empty partition for older lines."""
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
    """Return the first id of a month."""
    return (first.year * 100 + first.month) * 10**9


def middle(back: int) -> datetime:
    """Return a moment in the middle of the month."""
    return datetime.combine(month(back), datetime.min.time(), UTC) + timedelta(days=14)
