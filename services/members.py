"""Who is in a server, with which roles: what the gateway and Discord's answers tell us, kept for bulk decisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, func, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from gateways.discord_types import Member as LiveMember
from models import Grant, Member, Rule, now
from models.session import AsyncSession
from services import due, events
from services.errors import MemberNotFound
from services.policy import GrantFacts


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """A member as Discord shows them just now."""

    discord_id: str
    name: str
    roles: frozenset[str]
    pending: bool = False
    avatar: str | None = None
    bot: bool = False


def facts_from(live: LiveMember) -> MemberFacts:
    """The same facts from a member read over REST."""
    return MemberFacts(live.user_id, live.display_name, live.roles, live.pending, live.avatar, live.bot)


async def present(db: AsyncSession, server_id: int, discord_id: str) -> Member:
    """The member as we last knew them. Raises MemberNotFound for who left, was never there or is a bot."""
    member = await db.get(Member, (server_id, discord_id), populate_existing=True)
    if member is None or member.left_at is not None or member.bot:
        raise MemberNotFound
    return member


async def seen_many(db: AsyncSession, seen: Iterable[tuple[int, LiveMember]]) -> None:
    """Keep what Discord just said of these members."""
    by_server: dict[int, list[MemberFacts]] = {}
    for server_id, live in seen:
        by_server.setdefault(server_id, []).append(facts_from(live))
    for server_id, members in sorted(by_server.items()):
        await keep(db, server_id, members)


async def keep(db: AsyncSession, server_id: int, members: Sequence[MemberFacts]) -> None:
    """Keep these members of a server with their roles, in sets."""
    moment = now()
    ordered = sorted(members, key=lambda member: member.discord_id)
    for start in range(0, len(ordered), 2000):
        statement = insert(Member).values(
            [
                {
                    "server_id": server_id, "discord_id": member.discord_id, "name": member.name,
                    "avatar": member.avatar, "roles": sorted(member.roles), "pending": member.pending,
                    "bot": member.bot, "left_at": None, "seen_at": moment,
                }
                for member in ordered[start : start + 2000]
            ]
        )  # fmt: skip
        changed = ("name", "avatar", "roles", "pending", "bot", "left_at", "seen_at")
        await db.execute(
            statement.on_conflict_do_update(
                index_elements=["server_id", "discord_id"],
                set_={name: statement.excluded[name] for name in changed},
            )
        )


async def left_many(db: AsyncSession, gone: Sequence[tuple[int, str]]) -> None:
    """These are no longer members: their roles went with them, their proofs stay."""
    if not gone:
        return
    grants = tuple_(col(Grant.server_id), col(Grant.discord_id)).in_(gone)
    had = (await db.exec(select(Grant.server_id, Grant.discord_id, func.count()).where(grants).group_by(
        col(Grant.server_id), col(Grant.discord_id)
    ))).all()  # fmt: skip
    await events.record_all(
        db,
        [
            events.line("member.left", server_id=server_id, subject=discord_id, data={"roles": count})
            for server_id, discord_id, count in had
        ],
    )
    await db.execute(delete(Grant).where(grants))
    await db.execute(
        update(Member)
        .where(tuple_(col(Member.server_id), col(Member.discord_id)).in_(gone), col(Member.left_at).is_(None))
        .values(left_at=func.now(), roles=[])
    )


async def came_back(db: AsyncSession, grants: Mapping[tuple[int, str], Sequence[GrantFacts]]) -> None:
    """These left and came back without our hearing of it: the roles went with their membership."""
    for (server_id, discord_id), gone in grants.items():
        await db.execute(
            delete(Grant).where(
                col(Grant.server_id) == server_id, col(Grant.discord_id) == discord_id,
                col(Grant.role_id).in_([grant.role_id for grant in gone]),
            )
        )  # fmt: skip
    await events.record_all(
        db,
        [
            events.line("member.left", server_id=server_id, subject=discord_id, data={"roles": len(gone)})
            for (server_id, discord_id), gone in grants.items()
        ],
    )


async def joined(db: AsyncSession, server_id: int, member: MemberFacts) -> None:
    """Somebody came (back): what they hold is looked at straight away, and a bot holds nothing."""
    await keep(db, server_id, [member])
    if not member.bot:
        await due.mark_member(db, server_id, member.discord_id, due.JOINED)


async def changed(db: AsyncSession, server_id: int, member: MemberFacts) -> None:
    """A member's roles, name or screening changed: look again if that can matter to a role of ours."""
    known = await db.get(Member, (server_id, member.discord_id))
    before = set(known.roles) if known else set[str]()
    waited = bool(known and known.pending and not member.pending)
    await keep(db, server_id, [member])
    lost = before - member.roles
    ours = False
    if lost:
        ours = (
            await db.exec(
                select(Grant.id).where(
                    Grant.server_id == server_id,
                    Grant.discord_id == member.discord_id,
                    Grant.state == "held",
                    col(Grant.role_id).in_(lost),
                )
            )
        ).first() is not None
    if waited:
        await db.execute(
            update(Grant)
            .where(
                col(Grant.server_id) == server_id,
                col(Grant.discord_id) == member.discord_id,
                col(Grant.state) == "giving",
            )
            .values(next_at=func.now())
        )
    if waited or ours:
        await due.mark_member(db, server_id, member.discord_id, due.JOINED)


async def replace_all(db: AsyncSession, server_id: int, members: Sequence[MemberFacts]) -> None:
    """The whole list of a server's members: keep it, and let go of those not on it.

    Who came unheard is looked at, and who lost a role there is a rule for: perhaps they left and came back.

    Whoever is missing on it and has a role of ours is asked for by name before that is believed: a list that was cut
    off must cost nobody what the ledger knows of them.
    """
    result = await db.execute(
        text("SELECT discord_id, roles FROM member WHERE server_id = :server AND left_at IS NULL"),
        {"server": server_id},
    )
    had = {str(discord_id): frozenset[str](roles) for discord_id, roles in result.all()}
    before, present = set(had), {member.discord_id for member in members}
    await keep(db, server_id, members)
    granted = await db.exec(select(Grant.discord_id).where(Grant.server_id == server_id).distinct())
    missing = before - present
    doubtful = missing & set(granted.all())
    await _unknown(db, server_id, sorted(doubtful))
    await left_many(db, [(server_id, discord_id) for discord_id in sorted(missing - doubtful)])
    ruled = frozenset((await db.exec(select(Rule.role_id).where(Rule.server_id == server_id).distinct())).all())
    lost = {one.discord_id for one in members if (had.get(one.discord_id, frozenset()) - one.roles) & ruled}
    if stirred := sorted((present - before) | lost):
        await due.mark_members(db, server_id, stirred, due.JOINED)


async def _unknown(db: AsyncSession, server_id: int, people: Sequence[str]) -> None:
    """Nothing is known of these any more, so the look at them begins with asking Discord."""
    await db.execute(delete(Member).where(col(Member.server_id) == server_id, col(Member.discord_id).in_(people)))
    for discord_id in people:
        await due.mark_member(db, server_id, discord_id, due.JOINED)
