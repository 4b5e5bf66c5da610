"""The members of a server as its admins may see them: searchable, with the roles of rules."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import col, select

from gateways import Gateways
from models import Grant, Member, Rule
from models.db.session import AsyncSession
from services.accounts import users
from services.core import rollups
from services.core.actors import Actor
from services.core.addresses import shorten
from services.core.json_view import json_view
from services.guilds import permissions

PAGE_SIZE = 50
LONGEST_QUERY = 100
FEW = 1_000
"""With fewer matches than this, one pass over the names counts and lists them; with more, a page fills quickly."""
OURS = frozenset({"held", "taking"})
"""The states of the ledger in which a member has a role from us."""


@json_view
class MemberRoleView:
    """A role of the server's rules, and whether this member has it."""

    role_id: str
    role_name: str
    role_color: str
    held: bool
    granted_by_us: bool


@json_view
class MemberRow:
    """A member; wallets are shortened, and empty without the member's consent for this server."""

    discord_id: str
    name: str
    avatar_url: str | None
    verified: bool
    """Whether a proved wallet of theirs counts in this server."""
    wallet_count: int
    """How many wallets count here, whether they are shown or not."""
    wallets: tuple[str, ...]
    roles: tuple[MemberRoleView, ...]


@json_view
class MembersPage:
    """One page of members; pages are counted from 1, `total` counts all matches."""

    members: tuple[MemberRow, ...]
    page: int
    page_size: int
    total: int


@dataclass(frozen=True, slots=True)
class Proved:
    """The wallets of a member that count in a server, and whether its admins may see them."""

    addresses: tuple[str, ...] = ()
    shared: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """The wallets that admins may see."""
        return tuple(map(shorten, self.addresses)) if self.shared else ()


async def list_members(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, query: str = "", page: int = 1
) -> MembersPage:
    """Return the members except bots, ordered by name; `query` is part of a name, or a whole Discord id.

    Raises ServerNotFound unless the actor runs the server, ProviderUnavailable.
    """
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    wanted = query.strip()[:LONGEST_QUERY]
    values = {"server": server_id, "wanted": wanted, "part": "%" + re.sub(r"([\\%_])", r"\\\1", wanted) + "%"}
    condition = f"{_LISTED} AND {_FITTING}" if wanted else _LISTED
    first = (page - 1) * PAGE_SIZE
    few = await _ids(db, condition, values, size=FEW, skipped=0) if wanted else None
    if few is not None and len(few) < FEW:
        total, ids = len(few), few[first : first + PAGE_SIZE]
    else:
        if wanted:
            total = int((await db.execute(f"SELECT count(*) FROM member WHERE {condition}", values)).scalar_one())
        else:
            total = await rollups.members(db, server_id)
        size = max(0, min(PAGE_SIZE, total - first))
        # Read from the nearer end, because the members before the page are skipped one by one.
        from_end = first > total // 2
        skipped = max(0, total - first - size) if from_end else first
        ids = await _ids(db, condition, values, size=size, skipped=skipped, from_end=from_end)
    listed = select(Member).where(Member.server_id == server_id, col(Member.discord_id).in_(ids))
    members = {member.discord_id: member for member in (await db.exec(listed)).all()}
    shown = [members[discord_id] for discord_id in ids if discord_id in members]
    return MembersPage(await _rows(db, server_id, shown), page, PAGE_SIZE, total)


async def _ids(
    db: AsyncSession, condition: str, values: Mapping[str, Any], *, size: int, skipped: int, from_end: bool = False
) -> list[str]:
    """Return `size` members after skipping some, ordered by name; `from_end` counts both from the last."""
    order = "lower(name) DESC, discord_id DESC" if from_end else "lower(name), discord_id"
    found = await db.execute(
        f"SELECT discord_id FROM member WHERE {condition} ORDER BY {order} LIMIT :size OFFSET :skipped",
        {**values, "size": size, "skipped": skipped},
    )
    ids = [str(discord_id) for (discord_id,) in found.all()]
    return ids[::-1] if from_end else ids


# Only columns of the index on names, spelt as in the index, so that searching and paging read no table row. Bots are
# left out, because they cannot prove a wallet.
_LISTED = "server_id = :server AND left_at IS NULL AND NOT bot"
_FITTING = "(lower(name) LIKE lower(CAST(:part AS text)) OR discord_id = :wanted)"


async def after(db: AsyncSession, server_id: int, discord_id: str, limit: int) -> tuple[MemberRow, ...]:
    """Return up to `limit` members except bots after this id, in the order of ids, without checking permissions.

    Each row has only the roles that the member has, or that we gave.
    """
    found = await db.exec(
        select(Member)
        .where(
            Member.server_id == server_id, col(Member.left_at).is_(None), col(Member.bot).is_(False),
            col(Member.discord_id) > discord_id,
        )
        .order_by(col(Member.discord_id))
        .limit(limit)
    )  # fmt: skip
    return await _rows(db, server_id, found.all(), every_role=False)


async def _rows(
    db: AsyncSession, server_id: int, members: Sequence[Member], *, every_role: bool = True
) -> tuple[MemberRow, ...]:
    people = [member.discord_id for member in members]
    proved = await wallets_of(db, server_id, people)
    roles = await _roles(db, server_id)
    ours = await _ours(db, server_id, people)
    # Four shared views for each role, however many members there are: 50 members times 250 roles would be 12,500.
    views = {
        role_id: {
            (held, granted): MemberRoleView(role_id, name, color, held, granted)
            for held in (False, True)
            for granted in (False, True)
        }
        for role_id, (name, color) in roles.items()
    }
    return tuple(
        _row(
            member, proved.get(member.discord_id, Proved()), views, ours.get(member.discord_id, frozenset()), every_role
        )
        for member in members
    )


def _row(
    member: Member,
    proved: Proved,
    roles: Mapping[str, Mapping[tuple[bool, bool], MemberRoleView]],
    ours: frozenset[str],
    every_role: bool,
) -> MemberRow:
    had = frozenset(member.roles)
    views = [
        found[role_id in had, role_id in ours]
        for role_id, found in roles.items()
        if every_role or role_id in had or role_id in ours
    ]
    return MemberRow(
        discord_id=member.discord_id,
        name=member.name,
        avatar_url=users.avatar_url(member.discord_id, member.avatar),
        verified=bool(proved.addresses),
        wallet_count=len(proved.addresses),
        wallets=proved.shown,
        roles=tuple(views),
    )


async def wallets_of(db: AsyncSession, server_id: int, people: Sequence[str]) -> dict[str, Proved]:
    """Return the wallets that count in the server by Discord id, oldest first."""
    result = await db.execute(
        """
        SELECT u.discord_id, array_agg(w.address ORDER BY w.id), bool_or(COALESCE(c.share_wallets, false))
        FROM "user" u JOIN wallet w ON w.user_id = u.id
        LEFT JOIN member_choice c ON c.user_id = u.id AND c.server_id = :server
        WHERE u.discord_id = ANY(CAST(:people AS text[])) AND COALESCE(c.use_wallets, true)
        GROUP BY u.discord_id
        """,
        {"server": server_id, "people": list(people)},
    )
    return {str(who): Proved(tuple(map(str, addresses)), bool(shared)) for who, addresses, shared in result.all()}


async def _roles(db: AsyncSession, server_id: int) -> dict[str, tuple[str, str]]:
    """Return the name and colour of each role that a rule gives."""
    rules = await db.exec(
        select(Rule.role_id, Rule.role_name, Rule.role_color)
        .where(Rule.server_id == server_id, col(Rule.deleted_at).is_(None))
        .order_by(col(Rule.id))
    )
    return {role_id: (name, color) for role_id, name, color in rules.all()}


async def _ours(db: AsyncSession, server_id: int, people: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the roles that these people have from us, by Discord id."""
    grants = await db.exec(
        select(Grant.discord_id, Grant.role_id).where(
            Grant.server_id == server_id, col(Grant.discord_id).in_(people), col(Grant.state).in_(OURS)
        )
    )
    found: dict[str, set[str]] = {}
    for discord_id, role_id in grants.all():
        found.setdefault(discord_id, set()).add(role_id)
    return {discord_id: frozenset(roles) for discord_id, roles in found.items()}
