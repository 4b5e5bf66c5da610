"""Coverage of a move: holders of its roles with a wallet that counts, and those for whom a rule says yes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy.dialects.postgresql import distinct_on
from sqlmodel import col, select

from gateways import Gateways
from locales import _
from models import MoveCount, Rule, ServerMove
from models.db.session import AsyncSession
from services.core import rollups
from services.core.actors import Actor
from services.core.errors import FieldRefused, MoveNotFound
from services.core.json_view import json_view
from services.engine.previews import identifying
from services.guilds import permissions
from services.rules.expression import parse_stored
from services.wallets.ownership import has_counting_wallet

RIGHT, WRONG, UNVERIFIED, UNKNOWN = "right", "wrong", "unverified", "unknown"
STANDINGS = (RIGHT, WRONG, UNVERIFIED, UNKNOWN)
PAGE = 50
STORED_EVERY = timedelta(minutes=10)
LARGE = 50_000
"""The number of members from which a read shows the last stored count instead of counting."""


@dataclass(frozen=True, slots=True)
class RoleCoverage:
    """The holders of one role by standing."""

    right: int = 0
    wrong: int = 0
    unverified: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """The holders of each role, counted at one time by the database's clock."""

    at: datetime
    roles: Mapping[str, RoleCoverage]

    def of(self, role_id: str) -> RoleCoverage:
        """Return the holders of a role."""
        return self.roles.get(role_id, RoleCoverage())


@json_view
class CoverageDay:
    """The holders of all roles of a move together, as last counted on one day (in UTC)."""

    day: date
    right: int
    wrong: int
    unverified: int
    unknown: int


@json_view
class HolderName:
    """A holder of a role by name."""

    discord_id: str
    name: str


@json_view
class HoldersPage:
    """One page of a role's holders with one standing; pages are counted from 1.

    `named` is false if so few are right, or so few are wrong, that names would reveal which wallet is whose.
    """

    members: tuple[HolderName, ...]
    page: int
    page_size: int
    total: int
    named: bool


# A grant has the last complete answer. A member who could not be read since then has a queued retry.
_STANDINGS = f"""
    SELECT h.role_id, h.discord_id, h.name, CASE
        WHEN NOT {has_counting_wallet(":server", "h.discord_id")} THEN 'unverified'
        WHEN g.id IS NULL OR NOT h.decided OR g.state NOT IN ('held', 'taking') OR EXISTS (
            SELECT 1 FROM due d WHERE d.kind = 'member' AND d.key = CAST(:server AS integer) || ':' || h.discord_id
            AND d.attempts > 0) THEN 'unknown'
        WHEN g.no_since IS NOT NULL OR g.gift_since IS NOT NULL OR g.state = 'taking' THEN 'wrong'
        ELSE 'right' END AS standing
    FROM (
        SELECT m.discord_id, m.name, r.role_id, EXISTS (
            SELECT 1 FROM rule WHERE rule.server_id = :server AND rule.role_id = r.role_id AND rule.state = 'active'
            AND rule.deleted_at IS NULL) AS decided
        FROM member m JOIN unnest(CAST(:roles AS text[])) AS r (role_id) ON r.role_id = ANY(m.roles)
        WHERE m.server_id = :server AND m.left_at IS NULL AND NOT m.bot AND m.roles && CAST(:roles AS text[])
    ) h LEFT JOIN "grant" g ON g.server_id = :server AND g.discord_id = h.discord_id AND g.role_id = h.role_id
"""


async def count(db: AsyncSession, server_id: int, roles: Sequence[str]) -> Coverage:
    """Count the holders of these roles now."""
    rows = await db.execute(
        f"SELECT role_id, standing, count(*) FROM ({_STANDINGS}) s GROUP BY role_id, standing",
        {"server": server_id, "roles": list(roles)},
    )
    found: dict[str, dict[str, int]] = {}
    for role_id, standing, total in rows.all():
        found.setdefault(str(role_id), {})[str(standing)] = int(total)
    at = await db.now()
    return Coverage(at, {role_id: RoleCoverage(**counts) for role_id, counts in found.items()})


async def of_move(db: AsyncSession, move: ServerMove) -> Coverage:
    """Return the coverage of an open move: counted now or, for a large server, as last stored."""
    if await rollups.members(db, move.server_id) < LARGE or (stored := await _stored(db, move)) is None:
        return await count(db, move.server_id, move.roles)
    return stored


async def _stored(db: AsyncSession, move: ServerMove) -> Coverage | None:
    newest = (
        select(MoveCount)
        .where(MoveCount.move_id == move.id, col(MoveCount.role_id).in_(move.roles))
        .ext(distinct_on(col(MoveCount.role_id)))
        .order_by(col(MoveCount.role_id), col(MoveCount.day).desc())
    )
    rows = (await db.exec(newest)).all()
    found = {row.role_id: RoleCoverage(row.earned, row.unearned, row.unverified, row.unknown) for row in rows}
    return Coverage(max(row.at for row in rows), found) if set(move.roles) <= found.keys() else None


async def store(db: AsyncSession, move: ServerMove) -> None:
    """Store today's coverage of a move, replacing what was stored earlier today."""
    seen = await count(db, move.server_id, move.roles)
    for role_id in sorted(move.roles):
        one = seen.of(role_id)
        values = {
            "move": move.id, "role": role_id, "right": one.right, "wrong": one.wrong, "unverified": one.unverified,
            "unknown": one.unknown,
        }  # fmt: skip
        await db.execute(_STORE, values)


_STORE = """
    INSERT INTO move_count (move_id, role_id, day, earned, unearned, unverified, unknown, at)
    VALUES (:move, :role, CAST(now() AT TIME ZONE 'UTC' AS date), :right, :wrong, :unverified, :unknown, now())
    ON CONFLICT (move_id, role_id, day) DO UPDATE SET earned = EXCLUDED.earned, unearned = EXCLUDED.unearned,
        unverified = EXCLUDED.unverified, unknown = EXCLUDED.unknown, at = EXCLUDED.at
"""


async def store_oldest(db: AsyncSession) -> bool:
    """Store the coverage of the open move with the oldest count, if older than STORED_EVERY; return whether one was."""
    move_id = (await db.execute(_OLDEST, {"every": STORED_EVERY})).scalar()
    if move_id is None:
        return False
    await store(db, await db.get_one(ServerMove, move_id))
    return True


_OLDEST = """
    SELECT v.id FROM server_move v LEFT JOIN LATERAL (
        SELECT max(c.at) AS at FROM move_count c WHERE c.move_id = v.id) c ON true
    WHERE v.state = 'open' AND COALESCE(c.at, '-infinity') < now() - CAST(:every AS interval)
    ORDER BY c.at NULLS FIRST, v.id LIMIT 1
"""


async def days(db: AsyncSession, move: ServerMove) -> tuple[CoverageDay, ...]:
    """Return the stored coverage of all present roles of a move together, oldest day first."""
    rows = await db.execute(
        "SELECT day, sum(earned), sum(unearned), sum(unverified), sum(unknown) FROM move_count "
        "WHERE move_id = :move AND role_id = ANY(CAST(:roles AS text[])) GROUP BY day ORDER BY day",
        {"move": move.id, "roles": move.roles},
    )
    return tuple(CoverageDay(day, *map(int, counts)) for day, *counts in rows.all())


async def holders(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, role_id: str, standing: str, page: int = 1
) -> HoldersPage:
    """Return the holders of a role of the open move who have one standing, ordered by name.

    Raises ServerNotFound unless the actor runs the server, MoveNotFound, FieldRefused, ProviderUnavailable.
    """
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    if standing not in STANDINGS:
        raise FieldRefused("standing", _("The standing is one of {standings}.").format(standings=", ".join(STANDINGS)))
    found = await db.exec(select(ServerMove).where(ServerMove.server_id == server_id, ServerMove.state == "open"))
    move = found.first()
    if move is None or role_id not in move.roles:
        raise MoveNotFound
    seen = (await count(db, server_id, [role_id])).of(role_id)
    total = int(getattr(seen, standing))
    if standing != UNVERIFIED and await _reveals(db, move, role_id, seen):
        return HoldersPage((), page, PAGE, total, named=False)
    rows = await db.execute(
        f"SELECT discord_id, name FROM ({_STANDINGS}) s WHERE standing = :standing "
        "ORDER BY lower(name), discord_id LIMIT :size OFFSET :skipped",
        {"server": server_id, "roles": [role_id], "standing": standing, "size": PAGE, "skipped": (page - 1) * PAGE},
    )
    names = tuple(HolderName(str(who), str(name)) for who, name in rows.all())
    return HoldersPage(names, page, PAGE, total, named=True)


async def _reveals(db: AsyncSession, move: ServerMove, role_id: str, seen: RoleCoverage) -> bool:
    """Return whether names would reveal which wallet is whose: so few holders meet the rules, or so few do not."""
    rules = await db.exec(
        select(Rule).where(
            Rule.server_id == move.server_id, Rule.role_id == role_id, Rule.state == "active",
            col(Rule.deleted_at).is_(None),
        )
    )  # fmt: skip
    trees = [parse_stored(rule.expression) for rule in rules.all()]
    by_absence = identifying.is_identifying_by_absence(*trees)
    return identifying.is_identifying(*trees) and identifying.are_few(seen.right, seen.wrong, by_absence=by_absence)
