"""Moments that lie further ahead than they can: the database's clock was ahead for a while, and is right again."""

from datetime import timedelta

from sqlalchemy import text

from models.db.session import AsyncSession

LONGEST_LEASE = timedelta(minutes=2)
LONGEST_REST = timedelta(hours=2)
"""The longest pause after refusals of Discord's, of a role and of a guild."""
LONGEST_WAIT = timedelta(hours=6)
"""The longest that Discord may have us wait with one change of a role."""
A_DAY = timedelta(days=1)
"""The longest quarantine, and how far ahead the bot may plan to identify."""
SOON = timedelta(minutes=1)

# What was claimed is free again, what pauses may go on, and what counts as new was read too long ago to count.
_CORRECTIONS = (
    "UPDATE due SET claimed_until = NULL, claimed_by = NULL WHERE key = ANY(ARRAY("
    "SELECT key FROM due WHERE claimed_until > now() + :lease ORDER BY key FOR UPDATE))",
    "UPDATE cursor SET owner = NULL, owned_until = NULL WHERE chain = ANY(ARRAY("
    "SELECT chain FROM cursor WHERE owned_until > now() + :lease ORDER BY chain FOR UPDATE))",
    "UPDATE \"grant\" SET next_at = now() WHERE state IN ('giving', 'taking') AND next_at > now() + :wait",
    'UPDATE "grant" SET no_since = now() WHERE no_since > now() + :soon',
    "UPDATE unanswered SET at = now() WHERE at > now() + :soon",
    "UPDATE role_refusal SET next_at = now() WHERE next_at > now() + :rest",
    "UPDATE guild_refusal SET rests_until = now() WHERE rests_until > now() + :rest",
    "UPDATE guild_refusal SET began_at = now() WHERE began_at > now() + :soon",
    "DELETE FROM refusal WHERE minute > now() + :soon",
    "DELETE FROM rate_share WHERE seen_at > now() + :soon",
    "UPDATE quarantine SET until = now() WHERE until > now() + :day",
    "UPDATE identify SET at = now() WHERE at > now() + :day",
    "UPDATE delegation_read SET read_at = to_timestamp(0) WHERE read_at > now() + :soon",
    "UPDATE token SET updated_at = now() - :day WHERE updated_at > now() + :soon",
)


async def correct(db: AsyncSession) -> None:
    """Correct every moment that nothing could have set by a clock that is right."""
    values = {
        "lease": LONGEST_LEASE, "rest": LONGEST_REST, "wait": LONGEST_WAIT, "day": A_DAY, "soon": SOON,
    }  # fmt: skip
    for statement in _CORRECTIONS:
        named = {name: value for name, value in values.items() if f":{name}" in statement}
        await db.execute(text(statement), named)
