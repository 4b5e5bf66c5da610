"""Monitoring counters, stored in the database and shared by all processes."""

from collections.abc import Mapping

from models.db.session import AsyncSession

ANSWERS = "provider_answers"
"""Counts by provider (a node is `base:0`) and by outcome: `ok`, `down`, … and `throttled` for each 429."""
EVENTS = "gateway_events"
"""Counts of events that could not be read, by the event's name; the outcome is `skipped`."""
ROLE_WRITES = "role_writes"
"""Counts by `give` or `take`, and by outcome as in `services.roles.outbox.WriteResult`."""


async def add(db: AsyncSession, name: str, counts: Mapping[tuple[str, str], int]) -> None:
    """Add to the counter `name`; the keys of `counts` are label and outcome."""
    if not counts:
        return
    keys = sorted(counts)  # a fixed order, so that two processes wait for each other instead of deadlocking
    await db.execute(
        """
        INSERT INTO counter (name, label, outcome, total)
        SELECT :name, * FROM unnest(CAST(:labels AS text[]), CAST(:outcomes AS text[]), CAST(:counts AS bigint[]))
        ON CONFLICT (name, label, outcome) DO UPDATE SET total = counter.total + EXCLUDED.total
        """,
        {
            "name": name, "labels": [label for label, _ in keys], "outcomes": [outcome for _, outcome in keys],
            "counts": [counts[key] for key in keys],
        },
    )  # fmt: skip


async def totals(db: AsyncSession) -> dict[tuple[str, str, str], int]:
    """Return every count by name, label and outcome."""
    rows = await db.execute("SELECT name, label, outcome, total FROM counter ORDER BY name, label, outcome")
    return {(str(name), str(label), str(outcome)): int(total) for name, label, outcome, total in rows.all()}
