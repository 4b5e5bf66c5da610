"""Correct stored times that are too far in the future, after the database's clock was ahead for a while."""

from datetime import timedelta

from sqlalchemy import text

from models.db.session import AsyncSession

LONGEST_LEASE = timedelta(minutes=2)
LONGEST_REST = timedelta(hours=2)
"""The longest pause after Discord has refused a role or a guild."""
LONGEST_WAIT = timedelta(hours=6)
"""The longest that Discord may delay one role change."""
A_DAY = timedelta(days=1)
"""The longest quarantine, and how far ahead the bot may plan to identify."""
SOON = timedelta(minutes=1)

# Release claims and leases, end pauses, and treat readings with a future time as outdated.
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
    "DELETE FROM gateway_limit WHERE read_at > now() + :soon",
    "UPDATE shard SET holder = NULL WHERE held_until > now() + :lease",
    "DELETE FROM bot_process WHERE seen_at > now() + :soon",
    "UPDATE delegation_read SET read_at = to_timestamp(0) WHERE read_at > now() + :soon",
    "UPDATE token SET updated_at = now() - :day WHERE updated_at > now() + :soon",
)


async def correct(db: AsyncSession) -> None:
    """Correct every stored time that no correct clock could have set."""
    values = {
        "lease": LONGEST_LEASE, "rest": LONGEST_REST, "wait": LONGEST_WAIT, "day": A_DAY, "soon": SOON,
    }  # fmt: skip
    for statement in _CORRECTIONS:
        named = {name: value for name, value in values.items() if f":{name}" in statement}
        await db.execute(text(statement), named)
