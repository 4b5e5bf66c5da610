"""What an admin does to a move: begin or change it, approve its end, and undo all of it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, or_, text, update
from sqlmodel import col, select

from gateways import Gateways
from locales import _, ngettext, sentences, series
from models import Breaker, Grant, Rule, ServerMove
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.core.errors import Conflict, FieldRefused, MoveNotFound, Outdated
from services.core.json_view import json_view
from services.guilds import permissions, rivals
from services.guilds.permissions import Rights
from services.guilds.role_safety import find, rank_refusal, refusal
from services.roles import breaker, kept_by_move
from services.roles.moves import announcement, messages
from services.roles.outbox import INTENT_CHANNEL
from services.rules import pausing

MOST_ROLES = 50
LONGEST = timedelta(days=366)
"""How far a move's end may lie ahead. An earlier begin than that long ago says no more than that the move has begun."""


@dataclass(frozen=True, slots=True)
class SeenMove:
    """A server's open move as somebody saw it; without dates there was none."""

    roles: tuple[str, ...] = ()
    begins_at: datetime | None = None
    until: datetime | None = None
    channel_id: str | None = None


@dataclass(frozen=True, slots=True)
class MoveOrder:
    """An admin's order for a move: its roles, its dates, and the channel to announce it in, if any.

    `begins_at` None means now for a new move, and leaves the begin of an open one as it is. `seen` is the open move
    that the order may replace; None stands for any.
    """

    until: datetime
    roles: Sequence[str]
    begins_at: datetime | None = None
    channel_id: str | None = None
    seen: SeenMove | None = None


@json_view
class MoveUndone:
    """The result of undoing a move, in words; `members` is how many get a role back at once.

    `messagesUpdated` is false if Discord did not let us change the panel or the announcement.
    """

    text: str
    members: int
    messages_updated: bool = True


async def begin_or_change(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: MoveOrder) -> bool:
    """Begin a move, or change the open one; return False if Discord did not let us bring the messages up to date.

    Raises ServerNotFound, FieldRefused (`until`, `beginsAt`, `roles`, `channelId`), Conflict (the bot is not in the
    server, or somebody is changing the move right now), Outdated if the open move is not the order's `seen`,
    ProviderUnavailable.
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    guild, person, bot = found.guild_with_bot()
    if order.channel_id is not None:
        await announcement.check_channel(outside, guild, bot, order.channel_id)
    await _lock(db, server_id)
    move = await _open(db, server_id)
    _check_seen(move, order.seen)
    is_new = move is None
    roles = await _checked_roles(db, server_id, order.roles)
    for role_id in sorted(set(roles) - set(move.roles if move is not None else ())):
        if reason := rank_refusal(guild.roles, role_id, person):
            raise FieldRefused("roles", reason)
    begins_at, until = await _checked_dates(db, order, move)
    if move is None:
        move = ServerMove(server_id=server_id, begins_at=begins_at, until=until)
    dropped = set(move.roles) - set(roles)
    move.roles, move.begins_at, move.until = roles, begins_at, until
    if move.begun_at is None and begins_at <= await db.now():
        move.begun_at = begins_at
    former = None, None
    if move.channel_id != order.channel_id:
        former = move.channel_id, move.message_id
        move.channel_id, move.message_id = order.channel_id, None
    await messages.plan(db, move)
    # Before the other writes, as in every transaction that writes about members.
    await queue.mark_server(db, server_id, queue.CHANGED)
    await _lock_grants(db, server_id, {*roles, *dropped})
    await pausing.call_off_removals(db, server_id, roles)
    await _make_gifts(db, server_id, dropped)
    await _end_gifts(db, server_id, roles)
    data = {"until": until.isoformat(), "roles": await _names(db, server_id, roles), "begins": begins_at.isoformat()}
    kind = "move.begun" if is_new else "move.changed"
    await audit.record(db, audit.line(kind, server_id=server_id, actor=actor.discord_id, data=data))
    return await messages.change(db, outside, found.server, move, posts=True, former=former)


def _check_seen(move: ServerMove | None, seen: SeenMove | None) -> None:
    """Raise Outdated if the open move is not `seen`; None stands for any."""
    present = SeenMove()
    if move is not None:
        present = SeenMove(tuple(move.roles), move.begins_at, move.until, move.channel_id)
    if seen not in {None, present}:
        raise Outdated(
            _("The move was changed meanwhile, so nothing is saved. Look at it as it is now, and try again.")
        )


async def _checked_roles(db: AsyncSession, server_id: int, roles: Sequence[str]) -> list[str]:
    wanted = list(dict.fromkeys(roles))
    if not wanted:
        raise FieldRefused("roles", _("Choose at least one role to hand over."))
    if len(wanted) > MOST_ROLES:
        raise FieldRefused("roles", _("A move has at most {count} roles.").format(count=MOST_ROLES))
    given = await db.exec(
        select(Rule.role_id).where(Rule.server_id == server_id, col(Rule.deleted_at).is_(None)).distinct()
    )
    if unknown := set(wanted) - set(given.all()):
        told = _("No rule of this server gives the role {role}. Make a rule first.")
        raise FieldRefused("roles", told.format(role=min(unknown)[:20]))
    return wanted


async def _checked_dates(db: AsyncSession, order: MoveOrder, move: ServerMove | None) -> tuple[datetime, datetime]:
    """Return when the move begins and until when it runs. Raises FieldRefused."""
    at = await db.now()
    if order.until <= at:
        raise FieldRefused("until", _("The date until which the move runs is in the future."))
    if order.until > at + LONGEST:
        raise FieldRefused("until", _("A move runs for at most a year."))
    begun = move is not None and move.begun_at is not None
    # A date of year 1 with a time zone can be before that year, and Python cannot read it from the database again.
    wanted = max(order.begins_at or at, at - LONGEST)
    begins_at = move.begins_at if move is not None and (begun or order.begins_at is None) else wanted
    if begins_at >= order.until:
        raise FieldRefused("beginsAt", _("The move begins before the date until which it runs."))
    return begins_at, order.until


async def approve(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, seen: SeenMove | None = None
) -> bool:
    """End the open move once its time is over: its roles follow the rules, and the breaker limits their removals.

    `seen` is the move as the actor saw it; None stands for any. Return False if Discord did not let us bring the
    messages up to date. Raises ServerNotFound, MoveNotFound, Outdated if another move is open, or the same one with
    other roles or dates, Conflict before the date, ProviderUnavailable.
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    await _lock(db, server_id)
    move = await _open(db, server_id)
    if move is None:
        raise MoveNotFound
    _check_seen(move, seen)
    if move.until > await db.now():
        raise Conflict(_("This move still runs. To end it earlier, change the date until which it runs."))
    move.state, move.approved_at = "approved", await db.now()
    await messages.plan(db, move)
    await queue.mark_server(db, server_id, queue.CHANGED)
    await pausing.begin_grace_of_kept(db, server_id, move.roles)
    data = {"roles": await _names(db, server_id, move.roles)}
    await audit.record(db, audit.line("move.approved", server_id=server_id, actor=actor.discord_id, data=data))
    return await messages.change(db, outside, found.server, move, with_panel=found.guild is not None)


async def undo(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> MoveUndone:
    """End the server's move without removals, or give back the roles that were taken since its end was approved.

    Members to whom no rule says yes keep their roles until one does again. Raises ServerNotFound, MoveNotFound,
    ProviderUnavailable.
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    await _lock(db, server_id)
    move = await newest(db, server_id)
    if move is None:
        raise MoveNotFound
    approved = move.state == "approved"
    back = 0
    words = _("The move is called off. Everybody keeps the roles of the move, until a rule says yes to them again.")
    if approved:
        found.guild_with_bot()  # raises before anything is written
    move.state, move.ended_at = "undone" if approved else "cancelled", await db.now()
    await messages.plan(db, move)
    # Before the other writes, so that no reconcile that began during the move takes a role after it.
    await queue.mark_server(db, server_id, queue.CHANGED)
    await _lock_grants(db, server_id, move.roles)
    if approved:
        back, words = await _give_back(db, found, actor, move)
    await _make_gifts(db, server_id, move.roles)
    data = {"roles": await _names(db, server_id, move.roles), "members": back, "approved": approved}
    await audit.record(db, audit.line("move.undone", server_id=server_id, actor=actor.discord_id, data=data))
    is_told = await messages.change(db, outside, found.server, move, with_panel=found.guild is not None)
    return MoveUndone(words, back, is_told)


async def newest(db: AsyncSession, server_id: int) -> ServerMove | None:
    """Return the server's newest move, if it is open, or approved and not undone."""
    rows = await db.exec(
        select(ServerMove).where(ServerMove.server_id == server_id).order_by(col(ServerMove.id).desc()).limit(1)
    )
    move = rows.first()
    return move if move is not None and move.state in {"open", "approved"} else None


async def begin_due(db: AsyncSession) -> int:
    """Begin the moves whose start has come, and return how many began."""
    rows = await db.execute(
        "UPDATE server_move SET begun_at = now() WHERE state = 'open' AND begun_at IS NULL AND begins_at <= now() "
        "RETURNING server_id"
    )
    servers = sorted(int(server_id) for (server_id,) in rows.all())
    if servers:
        await queue.mark_servers(db, servers, queue.CHANGED)
    return len(servers)


async def _lock(db: AsyncSession, server_id: int) -> None:
    """Keep others from changing the server's move until the transaction ends. Raises Conflict if somebody is doing so.

    No call waits for the lock: its holder may wait for many reconciles, and each waiting call would hold a connection.
    """
    if not await db.try_lock(f"move:{server_id}"):
        raise Conflict(_("Somebody is changing this move right now. Please try again in a few seconds."))


async def _open(db: AsyncSession, server_id: int) -> ServerMove | None:
    """Return the server's open move, locked: the scheduler may be about to begin it."""
    mine = select(ServerMove).where(ServerMove.server_id == server_id, ServerMove.state == "open")
    return (await db.exec(mine.with_for_update())).first()


async def _names(db: AsyncSession, server_id: int, roles: Collection[str]) -> list[str]:
    rows = await db.exec(
        select(Rule.role_id, Rule.role_name)
        .where(Rule.server_id == server_id, col(Rule.role_id).in_(roles))
        .order_by(col(Rule.id))
    )
    named = dict(rows.all())
    return [named.get(role_id, role_id) for role_id in roles]


async def _lock_grants(db: AsyncSession, server_id: int, roles: Collection[str]) -> None:
    """Lock the grants of these roles that a move's change can concern, before several statements change some of them.

    One after the other, these could deadlock with what locks many at once, such as the deletion of a role. The grants
    of members who simply have the role stay free: they can be tens of thousands.
    """
    marks = (Grant.no_since, Grant.gift_since, Grant.held_back_at)
    concerned = or_(col(Grant.state) != "held", *(col(mark).is_not(None) for mark in marks))
    which = col(Grant.server_id) == server_id, col(Grant.role_id).in_(roles), concerned
    await db.exec(queue.locking_in_order(*which))


async def _make_gifts(db: AsyncSession, server_id: int, roles: Collection[str]) -> None:
    """Let members keep these roles as a gift, if the move kept the role for them and no rule says yes."""
    if roles:
        await db.execute(
            update(Grant)
            .where(
                queue.in_order_of_key(
                    col(Grant.server_id) == server_id, col(Grant.role_id).in_(roles), col(Grant.state) == "held",
                    col(Grant.no_since).is_not(None), or_(col(Grant.had_before), text(kept_by_move.WITHOUT_WALLET)),
                )
            )
            .values(gift_since=func.now(), no_since=None, first_no=None, held_back_at=None)
        )  # fmt: skip


async def _end_gifts(db: AsyncSession, server_id: int, roles: Collection[str]) -> None:
    """Count roles that an earlier move left to members as handed over again, so that the new move keeps them."""
    await db.execute(
        update(Grant)
        .where(
            queue.in_order_of_key(
                col(Grant.server_id) == server_id, col(Grant.role_id).in_(roles), col(Grant.had_before),
                col(Grant.state) == "held", col(Grant.gift_since).is_not(None),
            )
        )
        .values(gift_since=None, no_since=func.now())
    )  # fmt: skip


async def _give_back(db: AsyncSession, found: Rights, actor: Actor, move: ServerMove) -> tuple[int, str]:
    """Give back the roles taken since the approval from members to whom somebody else had given them.

    Return the number of members, and the sentences about the result.
    """
    guild, person, bot = found.guild_with_bot()
    can, cannot = list[str](), list[str]()
    for role_id in move.roles:
        role = find(guild.roles, role_id)
        (can if role is not None and not refusal(role, guild.id, bot, person) else cannot).append(role_id)
    who = {"server": move.server_id, "roles": can, "since": move.approved_at}
    concerned = [str(one) for (one,) in (await db.execute(_CONCERNED, who)).all()]
    await queue.mark_members(db, move.server_id, concerned, queue.CHANGED)
    waiting = await db.exec(select(Breaker.role_id).where(Breaker.server_id == move.server_id))
    for role_id in sorted(set(waiting.all()) & set(can)):
        await breaker.dismiss(db, move.server_id, actor.discord_id, role_id)
    turned = (await db.execute(_TURN_ROUND, who)).all()
    given = (await db.execute(_GIVE, who)).all()
    back = [(str(discord_id), str(role_id)) for discord_id, role_id in [*turned, *given]]
    for role_id in can:
        await rivals.end(db, move.server_id, role_id, [one for one, role in back if role == role_id])
    await db.execute("SELECT pg_notify(:channel, '')", {"channel": INTENT_CHANNEL})
    people = len({one for one, _ in back})
    words = [_given_back(people), _("Everybody keeps the roles of the move, until a rule says yes to them again.")]
    if cannot:
        names = series(await _names(db, move.server_id, cannot))
        words.append(_("The bot cannot give {roles} any more.").format(roles=names))
    return people, sentences(*words)


def _given_back(count: int) -> str:
    if count == 0:
        return _("Nobody gets anything back.")
    return ngettext(
        "{count} member gets back what was taken since the end of the move.",
        "{count} members get back what was taken since the end of the move.",
        count,
    ).format(count=count)


_TAKEN = """
    SELECT DISTINCT e.subject, e.role_id FROM event e
    WHERE e.server_id = :server AND e.role_id = ANY(CAST(:roles AS text[])) AND e.kind = 'role.taken'
    AND e.at >= :since AND e.data ->> 'hadBefore' = 'true'
"""
_CONCERNED = f"""
    SELECT subject FROM ({_TAKEN}) t
    UNION SELECT discord_id FROM "grant"
    WHERE server_id = :server AND role_id = ANY(CAST(:roles AS text[])) AND state = 'taking' AND had_before
"""
# The role may (still) be there, so `attempts` starts at 1: the writer first reads the member. Grants are locked in the
# order of `queue.in_order_of_key`.
_TURN_ROUND = """
    UPDATE "grant" SET state = 'giving', attempts = 1, gift_since = now(), no_since = NULL, held_back_at = NULL,
        intended_at = now(), next_at = now(), updated_at = now()
    WHERE id IN (
        SELECT id FROM "grant" WHERE server_id = :server AND role_id = ANY(CAST(:roles AS text[]))
        AND state = 'taking' AND had_before ORDER BY discord_id, role_id FOR UPDATE)
    RETURNING discord_id, role_id
"""
_GIVE = f"""
    INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, gift_since,
                         intended_at, next_at, attempts, created_at, updated_at)
    SELECT m.server_id, m.discord_id, t.role_id, CAST('{{}}' AS integer[]), 'giving', true,
           jsonb_build_object('undone', 'move'), now(), now(), now(), 1, now(), now()
    FROM ({_TAKEN}) t JOIN member m ON m.server_id = :server AND m.discord_id = t.subject AND m.left_at IS NULL
    WHERE NOT (t.role_id = ANY(m.roles)) AND NOT EXISTS (SELECT 1 FROM farewell f WHERE f.discord_id = m.discord_id)
    ORDER BY m.discord_id, t.role_id
    ON CONFLICT (server_id, discord_id, role_id) DO NOTHING RETURNING discord_id, role_id
"""
