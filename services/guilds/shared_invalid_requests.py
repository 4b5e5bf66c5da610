"""Discord's refusals, summed over all processes, so that all pause once there are too many."""

import json

from gateways.discord.invalid_requests import GUILD_ALLOWED, WINDOW, Refusals
from models import transaction
from models.db.session import AsyncSession

RESTS = (600, 1_800, 7_200)
"""Seconds for which a guild pauses after GUILD_ALLOWED refusals; the last one repeats."""


async def share(refusals: Refusals) -> None:
    """Publish this process's refusals and read the others'. Call it every few seconds."""
    count, guilds = refusals.untold, refusals.untold_guilds
    async with transaction() as db:
        if count:
            db.later(
                "INSERT INTO refusal (minute, count) VALUES (date_trunc('minute', now()), :count) "
                "ON CONFLICT (minute) DO UPDATE SET count = refusal.count + EXCLUDED.count",
                {"count": count},
            )
        if guilds:
            values = {"counts": json.dumps(guilds), "window": WINDOW, "allowed": GUILD_ALLOWED}
            db.later(_COUNT, values)
            db.later(_REST, {"counts": json.dumps(guilds), "allowed": GUILD_ALLOWED, "rests": list(RESTS)})
        # A minute that is partly outside the window still counts in full.
        (((together,),), resting) = await db.together(
            (
                "SELECT COALESCE(sum(count), 0) FROM refusal "
                "WHERE minute > now() - make_interval(secs => :window) - interval '1 minute'",
                {"window": WINDOW},
            ),
            (
                "SELECT guild_id, extract(epoch FROM rests_until - now()) FROM guild_refusal WHERE rests_until > now()",
                {},
            ),
        )
    refusals.mark_reported(count, int(together))
    refusals.mark_guilds_reported(guilds, {str(guild_id): float(seconds) for guild_id, seconds in resting})


# A refusal during a guild's pause was in flight or came from a screen: it starts no further pause.
_COUNT = """
    INSERT INTO guild_refusal (guild_id, began_at, count, rests)
    SELECT key, now(), CAST(value AS integer), 0 FROM jsonb_each_text(CAST(:counts AS jsonb)) ORDER BY key
    ON CONFLICT (guild_id) DO UPDATE SET
        count = EXCLUDED.count + CASE WHEN guild_refusal.began_at > now() - make_interval(secs => :window)
                                      THEN guild_refusal.count ELSE 0 END,
        began_at = CASE WHEN guild_refusal.began_at > now() - make_interval(secs => :window)
                        THEN guild_refusal.began_at ELSE now() END
    WHERE guild_refusal.rests_until IS NULL OR guild_refusal.rests_until <= now()
"""
_REST = """
    UPDATE guild_refusal SET count = 0, began_at = now(), rests = rests + 1,
        rests_until = now() + make_interval(
            secs => (CAST(:rests AS integer[]))[LEAST(rests + 1, cardinality(CAST(:rests AS integer[])))])
    WHERE guild_id IN (SELECT jsonb_object_keys(CAST(:counts AS jsonb))) AND count >= :allowed
"""


async def clear(db: AsyncSession) -> None:
    """Delete minutes that no longer count, and guilds whose last refusals and pause are more than a day old."""
    await db.execute("DELETE FROM refusal WHERE minute < now() - interval '1 hour'")
    await db.execute(
        "DELETE FROM guild_refusal WHERE began_at < now() - interval '1 day' "
        "AND (rests_until IS NULL OR rests_until < now() - interval '1 day')"
    )
