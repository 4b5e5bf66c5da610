"""The `server` row of a guild: found by Discord's id, and inserted once however many transactions insert it."""

from sqlalchemy.dialects.postgresql import insert
from sqlmodel import select

from models import Server
from models.db.session import AsyncSession


async def server_of(db: AsyncSession, guild_id: str) -> Server | None:
    """Return our row of a guild, or None."""
    return (await db.exec(select(Server).where(Server.discord_id == guild_id))).first()


async def ensure_server(db: AsyncSession, guild_id: str, name: str) -> Server:
    """Return our row of a guild; a guild that we do not know gets one with this name, without the bot.

    An admin may add a server with the form while the bot joins it. The later transaction waits for the earlier one and
    continues with its row.
    """
    server = await server_of(db, guild_id)
    if server is None:
        # Only for an unknown guild, because a refused insert uses up an id too.
        row = insert(Server).values(discord_id=guild_id, name=name)
        await db.execute(row.on_conflict_do_nothing(index_elements=["discord_id"]))
        server = (await db.exec(select(Server).where(Server.discord_id == guild_id))).one()
    return server
