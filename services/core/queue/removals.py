"""Cancel the removals of members who were just queued, before a worker decides about them again."""

from sqlalchemy import text

from models.db.session import AsyncSession


async def call_off_removals_from(db: AsyncSession, discord_id: str) -> None:
    """Cancel a person's removals in all servers, because more of their wallets count now. Queue the person first.

    Otherwise a removal that was decided before would still be sent. Where the person is not queued, nothing would begin
    it again, so it continues.
    """
    await db.execute(text(_CALL_OFF), {"who": discord_id})


_CALL_OFF = """
    UPDATE "grant" g SET state = 'held', next_at = NULL, attempts = 0
    WHERE g.discord_id = :who AND g.state = 'taking' AND EXISTS (
        SELECT 1 FROM due d WHERE d.kind = 'member' AND d.key = g.server_id || ':' || g.discord_id)
"""
