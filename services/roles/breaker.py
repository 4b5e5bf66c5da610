"""The breaker: when too many members would lose a role within a day, removals wait for an admin."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, or_, text, update
from sqlalchemy.dialects.postgresql import JSONPATH
from sqlmodel import col, select

from models import Breaker, Grant, now
from models.db.session import AsyncSession
from services.core import audit, queue
from services.rules.single_source import MOST_BY_ONE_SOURCE

MOST_PEOPLE = 5
MOST_SHARE_PERCENT = 20
LARGE_ROLE = 1_000
MOST_SHARE_BEYOND_PERCENT = 5
"""The limit in percent of the holders beyond LARGE_ROLE, because 20 % of a large role would be too many people."""
COUNTED_FOR = timedelta(hours=24)
"""How long a loss counts against the limit."""
APPROVED_FOR = timedelta(hours=24)
"""How long an approval lasts, unless an admin makes a change before by which other members can lose the role."""
WAS_GIVEN = """(evidence ->> 'given' IS DISTINCT FROM 'false' OR EXISTS (
    SELECT 1 FROM member m WHERE m.server_id = "grant".server_id AND m.discord_id = "grant".discord_id
    AND "grant".role_id = ANY(m.roles)))"""
"""SQL condition: the role that is being taken had been given. `ledger.py` notes where it had not, as far as Discord had
answered; the bot may have seen it all the same."""


def too_many(losing: int, holders: int) -> bool:
    """Return whether so many losses within a day are too many for a role with `holders` holders.

    They are too many if they exceed both 5 people and 20 % of the first thousand holders plus 5 % of the others.
    """
    first = min(holders, LARGE_ROLE)
    share = first * MOST_SHARE_PERCENT + (holders - first) * MOST_SHARE_BEYOND_PERCENT
    return losing > MOST_PEOPLE and losing * 100 > share


@dataclass(frozen=True, slots=True)
class Removal:
    """A removal before it is written to the ledger. `one_source`: its evidence depends on one source alone.

    `counts` is False if the member does not have the role yet, so that nobody loses it.
    """

    server_id: int
    role_id: str
    discord_id: str
    one_source: bool = False
    counts: bool = True


async def stop_excess(db: AsyncSession, candidates: Iterable[Removal]) -> set[tuple[int, str]]:
    """Trip the breaker of each role that would lose too many members; return the roles whose removals are stopped.

    Roles are pairs of server id and role id, and include those whose breaker tripped before. Whatever the cause, the
    count covers people from whom the role was taken within 24 hours and who do not have it back, people from whom it is
    being taken, and the new removals. A lock serialises workers, so that two batches cannot pass together. If the
    evidence comes from one source alone, more than 5 people a day are too many.
    """
    new: dict[tuple[int, str], set[Removal]] = {}
    for one in candidates:
        new.setdefault((one.server_id, one.role_id), set()).add(one)
    stopped: set[tuple[int, str]] = set()
    for (server_id, role_id), removals in sorted(new.items(), key=lambda item: item[0]):
        await db.lock(f"{server_id}:{role_id}")
        is_tripped = await _trip_if_too_many(db, server_id, role_id, [one for one in removals if one.counts])
        if is_tripped:
            stopped.add((server_id, role_id))
    return stopped


async def _trip_if_too_many(db: AsyncSession, server_id: int, role_id: str, removals: Sequence[Removal]) -> bool:
    """Trip the role's breaker if these removals are too many; return whether it is tripped, now or from before."""
    breaker = await db.get(Breaker, (server_id, role_id))
    if breaker is not None and breaker.approved_at is None and breaker.dismissed_at is None:
        return True
    # An approval is for one cause: a day's losses, until somebody changes who can lose the role. A dismissal is none.
    changed_at: datetime | None = None
    if breaker is not None and breaker.approved_at is not None and breaker.approved_at > now() - APPROVED_FOR:
        changed_at = await _changed_since(db, server_id, role_id, breaker.approved_at)
        if changed_at is None:
            return False
    if not removals:
        return False
    result = await db.execute(
        text(_LOSSES).bindparams(bindparam("alone", type_=JSONPATH)),
        {
            "server": server_id, "role": role_id, "period": COUNTED_FOR, "since": changed_at,
            "people": sorted(one.discord_id for one in removals),
            "by_one": sorted(one.discord_id for one in removals if one.one_source),
            "alone": "$.readings[*] ? (@.oneSource == true)", "few": min(MOST_PEOPLE, MOST_BY_ONE_SOURCE),
        },
    )  # fmt: skip
    losing, by_one_source, holders = (int(value) for value in result.one())
    if not too_many(losing, holders) and by_one_source <= MOST_BY_ONE_SOURCE:
        return False
    trip = Breaker(server_id=server_id, role_id=role_id, would_lose=losing, holders=holders)
    if breaker is not None:
        await db.delete(breaker)
        await db.flush()
    db.add(trip)
    await audit.record(
        db,
        audit.line(
            "breaker.tripped", server_id=server_id, role_id=role_id, data={"wouldLose": losing, "holders": holders}
        ),
    )
    await db.flush()
    return True


# All holders are counted only if the losses are more than a few: otherwise each sale would read the whole role.
_LOSSES = """
    WITH have AS NOT MATERIALIZED (
        SELECT discord_id, state, evidence FROM "grant"
        WHERE server_id = :server AND role_id = :role AND state IN ('held', 'taking', 'giving')
    ), losing AS MATERIALIZED (
        SELECT discord_id, bool_or(alone) AS alone FROM (
            SELECT e.subject AS discord_id, jsonb_path_exists(e.data, :alone) AS alone FROM event e
            WHERE e.server_id = :server AND e.role_id = :role AND e.kind = 'role.taken'
            AND e.at > GREATEST(now() - :period, CAST(:since AS timestamptz))
            AND NOT EXISTS (SELECT FROM have h WHERE h.discord_id = e.subject)
            UNION ALL SELECT discord_id, jsonb_path_exists(evidence, :alone) FROM have WHERE state = 'taking'
            UNION ALL SELECT p, p = ANY(CAST(:by_one AS text[])) FROM unnest(CAST(:people AS text[])) AS p
        ) every GROUP BY discord_id
    )
    SELECT count(*), count(*) FILTER (WHERE alone), CASE WHEN count(*) > :few THEN
        (SELECT count(*) FROM have WHERE state <> 'giving') + (SELECT count(*) FROM losing l
         WHERE NOT EXISTS (SELECT FROM have h WHERE h.discord_id = l.discord_id AND h.state <> 'giving')) ELSE 0 END
    FROM losing
"""


async def _changed_since(db: AsyncSession, server_id: int, role_id: str, since: datetime) -> datetime | None:
    """Return when an admin first made a change after `since` by which many members can lose the role, or None.

    Such a change is one of rules, the end of the role's protection, or the end of a move.
    """
    values = {"server": server_id, "role": role_id, "since": since, "names": list(_NAMES)}
    found: datetime | None = (await db.execute(_CHANGED, values)).scalar_one()
    return found


_CHANGED = """
    SELECT min(at) FROM event WHERE server_id = :server AND at > :since AND (
        kind = 'rule.deleted' AND role_id = :role
        OR kind = 'rule.created' AND role_id = :role AND data -> 'rule' ->> 'takesOver' = 'true'
        OR kind = 'rule.changed' AND :role IN (data -> 'before' ->> 'roleId', data -> 'after' ->> 'roleId')
            AND (data -> 'before') - CAST(:names AS text[]) IS DISTINCT FROM (data -> 'after') - CAST(:names AS text[])
        OR kind = 'batch.undone' AND data ->> 'of' LIKE 'rule.%' AND COALESCE(role_id, :role) = :role
        OR kind = 'role.protected' AND role_id = :role AND data ->> 'protected' = 'false'
        OR kind = 'move.approved')
    AND kind IN ('rule.created', 'rule.changed', 'rule.deleted', 'batch.undone', 'role.protected', 'move.approved')
"""
_NAMES = ("name", "roleName", "roleColor")
"""The fields of a rule's document that decide about nobody."""


async def tripped(db: AsyncSession, server_id: int) -> list[Breaker]:
    """Return the roles of a server whose removals wait for an admin."""
    rows = await db.exec(select(Breaker).where(Breaker.server_id == server_id, *WAITING))
    return list(rows.all())


WAITING = (col(Breaker.approved_at).is_(None), col(Breaker.dismissed_at).is_(None))
"""The conditions on a breaker that nobody has decided about."""
IS_WAITING = "b.approved_at IS NULL AND b.dismissed_at IS NULL"
"""The same in SQL, on a breaker `b`."""


async def waiting(db: AsyncSession, server_ids: Iterable[int]) -> dict[int, int]:
    """Return, by server, for how many roles removals wait for an admin; servers without any are absent."""
    rows = await db.exec(
        select(Breaker.server_id, func.count())
        .where(col(Breaker.server_id).in_(list(server_ids)), *WAITING)
        .group_by(col(Breaker.server_id))
    )
    return dict(rows.all())


async def clear(db: AsyncSession) -> None:
    """Delete the breakers whose approval no longer counts."""
    await db.execute("DELETE FROM breaker WHERE approved_at < now() - :kept", {"kept": APPROVED_FOR})


async def end_idle(db: AsyncSession) -> int:
    """End the trips for which nobody waits any more, and return how many; the breaker can trip again for the role."""
    of_role = Grant.server_id == Breaker.server_id, Grant.role_id == Breaker.role_id
    waits = or_(and_(_HELD_BACK, col(Grant.gift_since).is_(None)), col(Grant.state) == "taking")
    idle = (*WAITING, ~select(Grant.id).where(*of_role, waits).exists())
    found = await db.exec(select(Breaker.server_id, Breaker.role_id).where(*idle))
    ended = 0
    for server_id, role_id in sorted(found.all()):
        # A worker that holds removals back at this moment has the lock until it has written them.
        await db.lock(f"{server_id}:{role_id}")
        gone = await db.execute(
            delete(Breaker).where(*_of(server_id, role_id), *idle)
            .returning(col(Breaker.role_id))
        )  # fmt: skip
        if gone.first() is not None:
            ended += 1
            await audit.record(db, audit.line("breaker.ended", server_id=server_id, role_id=role_id))
    return ended


async def approve(db: AsyncSession, server_id: int, admin: str, role_id: str | None = None) -> int:
    """Permit the stopped removals of a server, or of one role; return the number of roles. See APPROVED_FOR.

    A dismissed removal can still be approved until the breaker trips again; its member is then reconciled again.
    Without `role_id` this concerns only roles dismissed within a day, and only if no other role waits, because nobody
    is shown an older dismissal.
    """
    which = (*_of(server_id, role_id), col(Breaker.approved_at).is_(None))
    if role_id is None:
        dismissed_lately = col(Breaker.dismissed_at) > now() - APPROVED_FOR
        undecided = (*which, col(Breaker.dismissed_at).is_(None))
        which = undecided if await _exists(db, undecided) else (*which, dismissed_lately)
    if not await _exists(db, which):
        return 0
    await queue.mark_server(db, server_id, queue.CHANGED)
    locked = await _locked(db, server_id, which)
    for breaker in locked:
        breaker.approved_at, breaker.approved_by = now(), admin
        breaker.dismissed_at = breaker.dismissed_by = None
        db.add(breaker)
        await db.execute(update(Grant).where(_stopped_by(breaker)).values(gift_since=None, held_back_at=None))
        await audit.record(
            db, audit.line("breaker.approved", server_id=server_id, actor=admin, role_id=breaker.role_id)
        )
    return len(locked)


async def _exists(db: AsyncSession, which: Sequence[ColumnElement[bool]]) -> bool:
    return (await db.exec(select(Breaker.role_id).where(*which).limit(1))).first() is not None


async def dismiss(db: AsyncSession, server_id: int, admin: str, role_id: str | None = None) -> int:
    """Let the members whose removal was stopped keep the role until a rule says yes to them again.

    Return the number of roles. Later removals are counted again and can trip the breaker again. The removals can still
    be approved later.
    """
    which = (*_of(server_id, role_id), *WAITING)
    roles = col(Grant.role_id).in_((await db.exec(select(Breaker.role_id).where(*which))).all())
    of_them = select(Grant.discord_id).where(Grant.server_id == server_id, roles, _STOPPED).distinct()
    # A running reconcile must not take the roles that these members now keep.
    await queue.mark_members(db, server_id, (await db.exec(of_them)).all(), queue.CHANGED)
    locked = await _locked(db, server_id, which)
    for breaker in locked:
        breaker.dismissed_at, breaker.dismissed_by = now(), admin
        db.add(breaker)
        await _give_back(db, server_id, breaker.role_id)
        kept = await db.execute(
            update(Grant).where(_stopped_by(breaker)).values(gift_since=now(), no_since=None).returning(col(Grant.id))
        )
        data = {"members": len(kept.all())}
        await audit.record(
            db, audit.line("breaker.dismissed", server_id=server_id, actor=admin, role_id=breaker.role_id, data=data)
        )
    return len(locked)


async def _locked(db: AsyncSession, server_id: int, which: Sequence[ColumnElement[bool]]) -> Sequence[Breaker]:
    """Return these rows, locked and as they are now, without those that somebody else decided meanwhile.

    The grants whose removals they stopped are locked before them, as by a reconcile and by the deletion of a role.
    """
    roles = (await db.exec(select(Breaker.role_id).where(*which))).all()
    await db.exec(queue.locking_in_order(col(Grant.server_id) == server_id, col(Grant.role_id).in_(roles), _STOPPED))
    rows = await db.exec(
        select(Breaker)
        .where(*which, col(Breaker.role_id).in_(roles))
        .order_by(col(Breaker.role_id))
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return rows.all()


async def _give_back(db: AsyncSession, server_id: int, role_id: str) -> None:
    """Cancel removals from before the trip. They may have been sent, so the writer first reads the member.

    A removal that stopped a gift before it was known to have arrived is not cancelled: nobody had the role to keep.
    """
    await db.execute(
        update(Grant)
        .where(
            queue.in_order_of_key(
                col(Grant.server_id) == server_id,
                col(Grant.role_id) == role_id,
                col(Grant.state) == "taking",
                text(WAS_GIVEN),
            )
        )
        .values(state="giving", attempts=1, intended_at=func.now(), next_at=func.now(), held_back_at=func.now())
    )


def _stopped_by(breaker: Breaker) -> ColumnElement[bool]:
    """Return the condition on grants whose removal this trip stopped; one dismissed after an earlier trip is a gift."""
    of_role = and_(col(Grant.server_id) == breaker.server_id, col(Grant.role_id) == breaker.role_id)
    since = or_(col(Grant.gift_since).is_(None), col(Grant.gift_since) >= breaker.tripped_at)
    return queue.in_order_of_key(of_role, _HELD_BACK, since)


_HELD_BACK = col(Grant.held_back_at).is_not(None)
_STOPPED = or_(_HELD_BACK, col(Grant.state) == "taking")


def _of(server_id: int, role_id: str | None) -> tuple[ColumnElement[bool], ...]:
    of_server = col(Breaker.server_id) == server_id
    return (of_server,) if role_id is None else (of_server, col(Breaker.role_id) == role_id)
