"""Claims on interactions: of all processes and sessions that receive an interaction, exactly one answers it."""

from models.db.session import AsyncSession

FORGOTTEN_SECONDS = 3_600
"""Seconds for which a claimed interaction is remembered; Discord accepts no answer after 15 minutes."""


async def claim(db: AsyncSession, interaction_id: str) -> bool:
    """Claim the interaction and return whether this caller must answer it; only one process and session gets True."""
    found = await db.execute(
        "INSERT INTO interaction_claim (id, at) VALUES (:id, now()) ON CONFLICT DO NOTHING RETURNING id",
        {"id": interaction_id},
    )
    return found.first() is not None


async def forget_old(db: AsyncSession) -> None:
    """Delete claims on interactions that are too old for Discord to send again."""
    await db.execute(
        "DELETE FROM interaction_claim WHERE at < now() - make_interval(secs => :old)", {"old": FORGOTTEN_SECONDS}
    )
