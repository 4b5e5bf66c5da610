"""The bot's data about each guild, stored so that another process can resume the guild's shard."""

import json
from collections.abc import Collection, Sequence

from models.db.session import AsyncSession
from services.guilds.gateway.shards import SHARD_OF


async def keep(db: AsyncSession, guild_id: str, data: str) -> None:
    """Store a guild's snapshot if it differs from the stored one."""
    await db.execute(
        "INSERT INTO guild_picture (guild_id, data) VALUES (:guild, :data) ON CONFLICT (guild_id) "
        "DO UPDATE SET data = EXCLUDED.data WHERE guild_picture.data <> EXCLUDED.data",
        {"guild": guild_id, "data": data},
    )


async def colors(db: AsyncSession, guild_id: str) -> dict[str, int]:
    """Return the colours of a guild's roles, by role id, as they are in its snapshot; empty without one."""
    found = await db.execute("SELECT data FROM guild_picture WHERE guild_id = :guild", {"guild": guild_id})
    data = found.scalar_one_or_none()
    return {} if data is None else {role["id"]: role["color"] for role in json.loads(data)["roles"]}


async def of_shard(db: AsyncSession, number: int, count: int) -> Sequence[str] | None:
    """Return the snapshots of all guilds of a shard; None if any guild has no snapshot."""
    found = await db.execute(
        "SELECT p.data FROM server s LEFT JOIN guild_picture p ON p.guild_id = s.discord_id "
        f"WHERE s.bot_invited AND {SHARD_OF} = :number",
        {"number": number, "count": count},
    )
    snapshots = [data for (data,) in found.all()]
    return None if any(data is None for data in snapshots) else snapshots


async def forget(db: AsyncSession, guild_ids: Collection[str]) -> None:
    """Delete the snapshots of guilds that the bot has left."""
    await db.execute(
        "DELETE FROM guild_picture WHERE guild_id = ANY(CAST(:guilds AS text[]))", {"guilds": sorted(guild_ids)}
    )
