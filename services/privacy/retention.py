"""Delete expired data: sessions, sign-ins, challenges, members who left, answered breakers, old readings."""

from sqlalchemy import text

from models.db.session import AsyncSession
from services.accounts import forgotten_people
from services.accounts.developers import webhook_deliveries
from services.collections import stored_traits
from services.collections.census import days, reach
from services.guilds import refusal_budget
from services.guilds.gateway import interaction_claims, known_people
from services.holdings import surveys
from services.privacy import future_times, log_partitions, payouts
from services.roles import in_doubt
from services.rules import limits, pausing
from services.rules.types import stored_lists
from services.runtime import schedules
from services.triggers import quarantine, sightings, unreached_blocks
from settings import settings

SCHEDULE = schedules.HOUSEKEEPING
"""The name of its row in the schedule."""
LEFT_DAYS = 30
"""How long a member who left a server is kept there; the privacy policy states all of these times."""
TOLD_DAYS, UNTOLD_DAYS = 30, 365
"""How long a notice is kept after it was shown, and if it never is; ended alerts are kept for the latter time."""
TALLY_DAYS, TRAIL_DAYS = 30, 180
"""How long a wallet's count of matching tokens is kept, and the list of tokens that have reached it."""
RIVAL_DAYS = 30
"""How long a record of a rival that gave or took a role is kept."""
STRANGERS = "strangers"
"""The name of the schedule that deletes members for whom there is no reason to store them."""
SERVERS_AT_ONCE = 50
"""The most servers that one turn searches for such members."""
AT_ONCE = 50_000
"""Lines of the log that one transaction deletes."""


async def housekeep(db: AsyncSession) -> None:
    """Delete everything that is older than it may be. If the log may have more of it, make the next turn due at once.

    `log_partitions` drops whole months of the log. Secrets that are kept are sealed with the present key.
    """
    await webhook_deliveries.seal_again(db)
    await clear_expired(db)
    await pausing.sweep_deleted(db)
    await payouts.forget(db, settings().log_days)
    if await clear_log(db, settings().log_days) == AT_ONCE:
        await schedules.bring_forward(db, SCHEDULE)


async def forget_strangers(db: AsyncSession) -> None:
    """Delete members for whom there is no reason to store them any more, some at a time, one server after the other.

    Earlier versions stored every member. The row of an erased person is deleted here too.
    """
    (found,) = await db.together(("SELECT done FROM schedule WHERE name = :name", {"name": STRANGERS}))
    server_id, gone = int(found[0][0]) if found else 0, 0
    for _ in range(SERVERS_AT_ONCE):
        after = server_id
        server_id, gone = await known_people.forget_strangers(db, after)
        if gone == known_people.DELETED_AT_ONCE:
            server_id = after
        if gone or not server_id:
            break
    await db.execute(
        text("UPDATE schedule SET done = :server WHERE name = :name"), {"name": STRANGERS, "server": server_id}
    )
    if server_id or gone:
        await schedules.bring_forward(db, STRANGERS)


async def clear_expired(db: AsyncSession) -> None:
    """Delete what can no longer be used, and what is older than the privacy policy permits."""
    await future_times.correct(db)
    await forgotten_people.clear(db)
    await db.execute(text("DELETE FROM session WHERE expires_at < now()"))
    await db.execute(text("DELETE FROM sign_in WHERE expires_at < now()"))
    await db.execute(text("DELETE FROM handover WHERE expires_at < now()"))
    await db.execute(text("DELETE FROM challenge WHERE expires_at < now() - interval '7 days'"))
    await sightings.clear(db)
    await quarantine.clear(db)
    await unreached_blocks.correct(db)
    await stored_traits.forget_old(db)
    await reach.forget(db)
    await days.forget(db)
    await refusal_budget.clear(db)
    await in_doubt.clear(db)
    await pausing.forget_refusals(db)
    await limits.pause(db)
    await stored_lists.clear(db)
    await webhook_deliveries.clear(db)
    await surveys.forget_replaced(db)
    await known_people.forget_watches(db)
    await interaction_claims.forget_old(db)
    # A member who returns later is recorded as new; the privacy policy names the time.
    await db.execute(
        text("DELETE FROM member WHERE left_at < now() - make_interval(days => :days)"), {"days": LEFT_DAYS}
    )
    await db.execute(
        text("DELETE FROM tally WHERE observed_at < now() - make_interval(days => :days)"), {"days": TALLY_DAYS}
    )
    await db.execute(
        text("DELETE FROM token_trail WHERE updated_at < now() - make_interval(days => :days)"), {"days": TRAIL_DAYS}
    )
    for table in ("delegation", "delegation_read"):
        await db.execute(
            text(
                f"DELETE FROM {table} d WHERE NOT EXISTS "
                "(SELECT 1 FROM wallet w WHERE w.family = 'evm' AND w.address = d.delegate "
                "AND w.chain IN ('', d.chain))"
            )
        )
    await db.execute(
        text(
            "DELETE FROM notice WHERE told_at < now() - make_interval(days => :told) "
            "OR created_at < now() - make_interval(days => :untold)"
        ),
        {"told": TOLD_DAYS, "untold": UNTOLD_DAYS},
    )
    await db.execute(
        text("DELETE FROM alert WHERE ended_at < now() - make_interval(days => :days)"), {"days": UNTOLD_DAYS}
    )
    await db.execute(
        text("DELETE FROM rival_move WHERE at < now() - make_interval(days => :days)"), {"days": RIVAL_DAYS}
    )
    await db.execute(text("UPDATE rival_move SET next_at = NULL WHERE next_at < now() - interval '2 days'"))
    await db.execute(text("DELETE FROM breaker WHERE approved_at < now() - interval '24 hours'"))


async def clear_log(db: AsyncSession, days: int) -> int:
    """Delete the oldest lines of the log older than `days`, at most AT_ONCE; return how many.

    With 0 days the log is kept forever. Lines are read in the order of their ids, which is the order of time. Months
    without a line to keep are left to `log_partitions`, which drops them whole.
    """
    if days == 0:
        return 0
    gone = await db.execute(
        text(
            """
            WITH oldest AS (SELECT id, at FROM event WHERE id >= :first ORDER BY id LIMIT :most),
            gone AS (DELETE FROM event e USING oldest o WHERE e.id = o.id
                     AND o.at < now() - make_interval(days => :days) RETURNING 1)
            SELECT count(*) FROM gone
            """
        ),
        {"most": AT_ONCE, "days": days, "first": await log_partitions.kept_from(db, days)},
    )
    return int(gone.scalar_one())
