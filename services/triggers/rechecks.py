"""Re-checks by admins and by members themselves, and how many members still wait."""

from datetime import timedelta

from gateways import Gateways
from locales import _
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.core.errors import TooMany
from services.core.relative_times import in_seconds
from services.guilds import members, permissions

EVERY = timedelta(seconds=60)
"""How often a member may ask in one server: a reconcile costs reads on every chain concerned."""


async def of_member(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, discord_id: str) -> None:
    """Queue one member ahead of most others. Raises ServerNotFound, MemberNotFound, ProviderUnavailable."""
    await permissions.require_admin(db, outside, actor, server_id)
    await members.current_member(db, server_id, discord_id)
    await queue.mark_member(db, server_id, discord_id, queue.WAITING)
    await audit.record(db, audit.line("recheck.asked", server_id=server_id, actor=actor.discord_id, subject=discord_id))


async def waiting(db: AsyncSession, server_id: int, discord_id: str | None = None) -> int:
    """Return how many members of a server wait or are being reconciled; for one member, return 0 or 1.

    Excludes members scheduled for later (a grace time, a pause after a failure). Checks no permissions.
    """
    # One member is asked about by another statement. A condition that is true if no member is given would read all rows
    # of the server once the plan is made without the values.
    values: dict[str, object]
    if discord_id is None:
        whose = f"(SELECT CAST(:server AS integer) AS id) s JOIN due d ON {queue.OF_SERVER}"
        values = {"server": server_id}
    else:
        whose = "due d WHERE kind = 'member' AND key = :key"
        values = {"key": f"{server_id}:{discord_id}"}
    result = await db.execute(
        f"SELECT count(*) FROM (SELECT d.* FROM {whose}) d WHERE due_at <= now() OR claimed_until > now()", values
    )
    return int(result.scalar_one())


async def unwritten(db: AsyncSession, server_id: int, discord_id: str | None = None) -> int:
    """Return how many role changes of a server, or of one member, were decided in the last minute and are not written.

    Excludes older ones: Discord does not take them at present, which may last. Checks no permissions.
    """
    result = await db.execute(
        """
        SELECT count(*) FROM "grant" WHERE server_id = :server AND state IN ('giving', 'taking')
        AND intended_at > now() - interval '1 minute' AND discord_id = COALESCE(:who, discord_id)
        """,
        {"server": server_id, "who": discord_id},
    )
    return int(result.scalar_one())


async def ask(db: AsyncSession, actor: Actor, server_id: int) -> None:
    """Queue the member ahead of all others. Raises TooMany with the seconds until they may ask again."""
    await db.lock(f"{server_id}:{actor.discord_id}", 3)
    result = await db.execute(
        """
        SELECT extract(epoch FROM max(at) + CAST(:every AS interval) - now()) FROM event
        WHERE kind = 'recheck.asked' AND server_id = :server AND subject = :who AND actor = :who
        AND at <= now()  -- a later one is by a clock that was ahead
        """,
        {"every": EVERY, "server": server_id, "who": actor.discord_id},
    )
    left = result.scalar_one()
    if left is not None and left > 0:
        seconds = max(1, round(left))
        raise TooMany(
            _("You were checked a moment ago. You can ask again {time}.").format(time=in_seconds(seconds)), seconds
        )
    await audit.record(
        db, audit.line("recheck.asked", server_id=server_id, actor=actor.discord_id, subject=actor.discord_id)
    )
    await queue.mark_member(db, server_id, actor.discord_id, queue.WAITING)
