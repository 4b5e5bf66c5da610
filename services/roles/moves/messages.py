"""The messages about a move, its panel and announcement: changed in Discord once the move's change is committed."""

from datetime import datetime, timedelta

from sqlalchemy import func
from sqlmodel import col, select, update

from gateways import Gateways
from gateways.discord.types import ChannelGone
from models import Server, ServerMove
from models.db.database import release
from models.db.session import AsyncSession
from services.guilds import verification_channel
from services.roles.moves import announcement

RETRY_AFTER, RETRY_FOR = timedelta(minutes=15), timedelta(days=1)
"""The pause before messages that Discord did not let us change are tried again, and how long after the last change."""
TAKEN_OVER_AFTER = timedelta(minutes=1)
"""How long after a change of the move the scheduler brings the messages up to date, if the caller has not done so."""


async def plan(db: AsyncSession, move: ServerMove) -> None:
    """Note, in the transaction that changes a move, that its messages have to be changed."""
    move.messages_at = await db.now() + TAKEN_OVER_AFTER
    db.add(move)
    await db.flush()


async def change(
    db: AsyncSession,
    outside: Gateways,
    server: Server,
    move: ServerMove,
    *,
    posts: bool = False,
    with_panel: bool = True,
    former: tuple[str | None, str | None] = (None, None),
) -> bool:
    """Commit the change of a move that `plan` noted, and write it into its messages.

    Return whether Discord let us; if not, or if this ends early, `bring_up_to_date` tries again. `posts` posts an
    announcement that was deleted in Discord again. `former` has the channel and the message of an announcement that was
    withdrawn.

    No row is locked while Discord is asked, and its answers are stored even if later work fails.
    """
    planned, at = move.messages_at, await db.now()
    await release(db)
    is_told = await _announced(db, outside, server, move, at, posts=posts)
    is_told = await announcement.withdraw(outside, server, move, *former) and is_told
    is_told = (not with_panel or await verification_channel.refresh_panel(db, outside, server)) and is_told
    ours = update(ServerMove).where(col(ServerMove.id) == move.id)
    kept = await db.execute(
        ours.where(col(ServerMove.messages_at) == planned)
        .values(messages_at=_next_at(move, await db.now(), is_told=is_told))
        .returning(col(ServerMove.id))
    )
    if kept.first() is None:
        # The move was changed again meanwhile, and that change may have reached Discord before ours.
        await db.execute(ours.values(messages_at=func.now()))
    return is_told


async def bring_up_to_date(db: AsyncSession, outside: Gateways) -> bool:
    """Change the messages of one move whose date has passed, or whose messages are not up to date.

    Return whether there was one. Retries end RETRY_FOR after the date or the end of the move.
    """
    due = select(ServerMove).where(col(ServerMove.messages_at) <= func.now()).order_by(col(ServerMove.messages_at))
    move = (await db.exec(due.limit(1).with_for_update(skip_locked=True))).first()
    if move is None:
        return False
    server = await db.get_one(Server, move.server_id)
    if server.bot_invited:
        await plan(db, move)
        await change(db, outside, server, move)
    else:
        move.messages_at = _next_at(move, await db.now(), is_told=True)
        db.add(move)
    return True


def _next_at(move: ServerMove, at: datetime, *, is_told: bool) -> datetime | None:
    """Return when the messages are next changed: on the date of the move, or at the next attempt."""
    date = move.until if move.state == "open" and move.until > at else None
    last = max(one for one in (move.until, move.approved_at, move.ended_at) if one is not None)
    if is_told or at >= last + RETRY_FOR:
        return date
    return min(date or at + RETRY_AFTER, at + RETRY_AFTER)


async def _announced(
    db: AsyncSession, outside: Gateways, server: Server, move: ServerMove, at: datetime, *, posts: bool
) -> bool:
    """Edit the announcement, or post it if it is not there yet; return whether it is up to date."""
    if move.channel_id is None or (move.message_id is None and move.state != "open"):
        return True
    if move.message_id is not None and not posts:
        return await announcement.edit(outside, server, move, at)
    channel_id = move.channel_id
    try:
        message_id = await announcement.post(outside, server, move, at, channel_id)
    except ChannelGone:
        return True
    if message_id is None:
        return False
    here = col(ServerMove.id) == move.id, col(ServerMove.channel_id) == channel_id
    posted = update(ServerMove).where(*here).values(message_id=message_id).returning(col(ServerMove.id))
    is_stored = (await db.execute(posted)).first() is not None
    present = await db.get(ServerMove, move.id, populate_existing=True)
    await release(db)
    # If it is not stored, another channel was chosen meanwhile.
    return is_stored or present is None or await announcement.withdraw(outside, server, present, channel_id, message_id)
