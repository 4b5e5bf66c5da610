"""Automatic changes to rules: pause, resume, and delete those that are settled; how a paused rule can resume."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import uuid4

from sqlalchemy import ARRAY, ColumnElement, Integer, and_, any_, delete, func, literal, or_, true, tuple_, update
from sqlmodel import col, select

from locales import N_
from models import Breaker, Grant, RoleRefusal, Rule
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.discord_text import color_hex

AWAY = "bot_away"
AWAY_REASON = N_("The bot is not in this server, so nothing can be given or taken.")
GONE = "role_gone"
REFUSED = "refused"
TOO_MANY = "too_many"
"""Causes of a pause besides those of `role_safety.judge`."""
RETRY_PAUSES = (60, 300, 1_800, 7_200)
"""Seconds until a refused role is tried again; the last one repeats."""
_MENDS = {
    AWAY: N_("Invite the bot again; the rule resumes automatically."),
    GONE: N_("Choose another role for the rule; it resumes automatically."),
    REFUSED: N_(
        "Check the bot's role in Server Settings › Roles, then press Resume on the Rules tab; without that it is tried "
        "again after 1 minute, 5 minutes, 30 minutes, then every 2 hours."
    ),
    TOO_MANY: N_("Delete rules that you no longer need, then press Resume on the Rules tab."),
    "managed": N_("Choose another role for the rule; it resumes automatically."),
    "linked": N_("Choose another role for the rule; it resumes automatically."),
    "dangerous": N_("Take that permission from the role, or choose another role; the rule resumes automatically."),
    "manage_roles": N_("Give the bot's role Manage Roles, or invite the bot again; the rule resumes automatically."),
    "above_bot": N_("Move the bot's role above it in Server Settings › Roles; the rule resumes automatically."),
}
"""What an admin can do about each cause, those of `role_safety.judge` too."""
_BY_HAND = N_("Press Resume on the Rules tab when it should give and take again.")


def mend_of(cause: str | None) -> str:
    """Return how a rule paused for this cause can resume."""
    return _MENDS.get(cause, _MENDS[REFUSED]) if cause else _BY_HAND


async def pause_role(db: AsyncSession, server_id: int, role_id: str, reason: str, cause: str) -> int:
    """Pause every deciding rule of a role with the reason, as `roles_judged` does; return how many."""
    return await roles_judged(db, server_id, paused={role_id: (reason, cause)})


async def pause_all(db: AsyncSession, server_id: int, reason: str, cause: str) -> int:
    """Pause every deciding rule of a server, and cancel all of its removals; return how many rules."""
    return await _pause(db, server_id, reason, cause, true(), left=[server_id])


async def pause_rules(db: AsyncSession, server_id: int, rules: Sequence[int], reason: str, cause: str) -> int:
    """Pause these deciding rules of a server; return how many."""
    return await _pause(db, server_id, reason, cause, col(Rule.id).in_(rules))


async def _pause(
    db: AsyncSession, server_id: int, reason: str, cause: str, which: ColumnElement[bool], left: Collection[int] = ()
) -> int:
    await lock_rules_where(db, col(Rule.server_id) == server_id, which)
    paused = await _pause_rules(db, server_id, reason, cause, which)
    await _change_grants(db, paused=paused, left=left)
    return len(paused)


async def lock_rules(
    db: AsyncSession, server_id: int, roles: Collection[str] | None = None, *, resumed: Collection[str] = ()
) -> None:
    """Lock a server's rules for these roles (None: any), and paused ones for those in `resumed`, in the order of ids.

    An admin's change of many rules locks them so, too. Lock them before you change several, and before the queue.
    """
    named = true() if roles is None else col(Rule.role_id).in_(roles)
    paused = col(Rule.role_id).in_(resumed) & (col(Rule.state) == "paused")
    await lock_rules_where(db, col(Rule.server_id) == server_id, named | paused)


async def lock_rules_where(db: AsyncSession, *which: ColumnElement[bool]) -> None:
    """Lock the rules that meet the conditions, in the order of ids. For several servers, all rules come first."""
    await db.exec(select(Rule.id).where(*which).order_by(col(Rule.id)).with_for_update(key_share=True))


class _RuleOf(NamedTuple):
    """A rule whose state has just changed, with its role."""

    server_id: int
    role_id: str
    rule_id: int


async def _pause_rules(
    db: AsyncSession, server_id: int, reason: str, cause: str, which: ColumnElement[bool]
) -> list[_RuleOf]:
    """Pause the deciding rules that meet the condition, and record it; return them. `_change_grants` has to follow."""
    by_itself = (col(Rule.state) == "paused") & col(Rule.pause_cause).not_in([cause, TOO_MANY])
    result = await db.execute(
        update(Rule)
        .where(
            col(Rule.server_id) == server_id,
            which,
            (col(Rule.state) == "active") | by_itself,
            col(Rule.deleted_at).is_(None),
        )
        .values(state="paused", pause_reason=reason, pause_cause=cause, paused_at=func.now(), updated_at=func.now())
        .returning(col(Rule.id), col(Rule.role_id))
    )
    paused = [_RuleOf(server_id, str(role_id), int(rule_id)) for rule_id, role_id in result.all()]
    batch = uuid4()
    await audit.record_all(
        db,
        [
            audit.line("rule.paused", **one._asdict(), batch=batch, data={"reason": reason, "cause": cause})
            for one in paused
        ],
    )
    return paused


async def roles_judged(
    db: AsyncSession,
    server_id: int,
    *,
    resumed: Collection[str] = (),
    paused: Mapping[str, tuple[str, str]] | None = None,
    gone: Collection[str] = (),
) -> int:
    """Resume or pause the rules of a server's roles; return how many rules changed. Given roles stay.

    `resumed` may be granted again. `paused` has the reason and the cause of each role that may not. `gone` were deleted
    in Discord: their grants are deleted, and no removal of them waits for an admin any more.

    A rule paused for another cause gets the new one, and a rule paused for the same cause the new words, which name the
    role. A rule that an admin paused stays unchanged, and so does a rule beyond the limits: the cause is not in its
    role. Rules paused because Discord refused a change are not resumed here: their role never looked wrong, so each
    event about it would cause the next refusal.
    """
    refused = {**(paused or {}), **dict.fromkeys(gone, (_GONE_REASON, GONE))}
    await lock_rules(db, server_id, refused, resumed=resumed)
    healed, stopped = list[_RuleOf](), list[_RuleOf]()
    for role_id in sorted({*refused, *resumed}):
        if role_id not in refused:
            healed += await _resume_rules(db, server_id, role_id, col(Rule.pause_cause).not_in([REFUSED, TOO_MANY]))
            continue
        reason, cause = refused[role_id]
        same = (col(Rule.server_id) == server_id, col(Rule.role_id) == role_id, col(Rule.pause_cause) == cause)
        await db.execute(update(Rule).where(*same, col(Rule.pause_reason) != reason).values(pause_reason=reason))
        stopped += await _pause_rules(db, server_id, reason, cause, col(Rule.role_id) == role_id)
    await _change_grants(db, resumed=healed, paused=stopped, gone=[(server_id, role_id) for role_id in sorted(gone)])
    return len(healed) + len(stopped)


_GONE_REASON = N_("The role was deleted in Discord. Choose another role for this rule.")


async def _change_grants(
    db: AsyncSession,
    *,
    resumed: Collection[_RuleOf] = (),
    paused: Collection[_RuleOf] = (),
    gone: Collection[tuple[int, str]] = (),
    left: Collection[int] = (),
) -> None:
    """Queue the members whom resumed rules concern, and change the grants of rules and roles that changed.

    `left` are servers that the bot left: all of their removals are cancelled.

    The grants of all roles are locked at once, in the order of their keys, and before any breaker, as by a reconcile.
    Role by role, this could deadlock with a reconcile of two members.
    """
    if resumed:
        await queue.mark_servers(db, sorted({one.server_id for one in resumed}), queue.CHANGED)
    role = tuple_(col(Grant.server_id), col(Grant.role_id))
    by_resumed = col(Grant.rule_ids).op("&&")([one.rule_id for one in resumed])
    by_paused = col(Grant.rule_ids).op("&&")([one.rule_id for one in paused])
    called_off = list[ColumnElement[bool]]()
    if resumed:
        called_off.append(role.in_(_roles(resumed)))
    if paused:
        called_off.append(role.in_(_roles(paused)) & by_paused)
    if left:
        called_off.append(col(Grant.server_id).in_(left))
    which = [and_(col(Grant.state) == "taking", one) for one in called_off]
    if resumed:
        which.append(and_(*_GRACE_RUNS, by_resumed))
    if gone:
        which.append(role.in_(gone))
    if not which:
        return
    among = await _locked_grants(db, *which)
    if called_off:
        await queue.call_off_where(db, among, or_(*called_off))
    if resumed:
        await _begin_grace(db, among, by_resumed)
    if gone:
        await _delete_grants(db, among, gone)
    for server_id in sorted({one.server_id for one in paused}):
        await queue.invalidate_running(db, server_id)


async def _locked_grants(db: AsyncSession, *which: ColumnElement[bool]) -> ColumnElement[bool]:
    """Lock the grants that meet any of these conditions, in the order of their keys; return the condition for them.

    Others, which another transaction may have changed meanwhile, would be locked in another order.
    """
    locked = list((await db.exec(queue.locking_in_order(or_(*which)))).all())
    return col(Grant.id) == any_(literal(locked, ARRAY(Integer)))


def _roles(rules: Collection[_RuleOf]) -> list[tuple[int, str]]:
    return sorted({(one.server_id, one.role_id) for one in rules})


async def _delete_grants(db: AsyncSession, locked: ColumnElement[bool], gone: Collection[tuple[int, str]]) -> None:
    """Delete the locked grants of deleted roles, and what waits for an admin about these roles."""
    of_roles = delete(Grant).where(locked, tuple_(col(Grant.server_id), col(Grant.role_id)).in_(gone))
    given = await db.execute(of_roles.returning(col(Grant.server_id), col(Grant.role_id), col(Grant.rule_ids)))
    holders, rule_ids = Counter[tuple[int, str]](), set[int]()
    for server_id, role_id, given_by in given.all():
        holders[server_id, role_id] += 1
        rule_ids.update(given_by)
    await db.execute(delete(Breaker).where(tuple_(col(Breaker.server_id), col(Breaker.role_id)).in_(gone)))
    for (server_id, role_id), count in sorted(holders.items()):
        data = {"holders": count}
        await audit.record(db, audit.line("role.deleted", server_id=server_id, role_id=role_id, data=data))
    if rule_ids:
        await sweep_deleted(db, rule_ids)


async def decide_again(
    db: AsyncSession, server_id: int, roles: Collection[str] | None = None, *, resumed: Collection[int] = ()
) -> None:
    """Queue a server's members after rules for these roles (None: any) changed, and cancel removals of the roles.

    `resumed` are rules that did not decide until now: the grace times begin again as by `begin_grace_again`.
    """
    # Before the other writes, as in all code that writes about members.
    await queue.mark_server(db, server_id, queue.CHANGED)
    taken, kept = _grants_of(server_id, roles), _given_by(server_id, resumed)
    which = [and_(col(Grant.state) == "taking", *taken), *([and_(*_GRACE_RUNS, *kept)] if resumed else [])]
    # Together: one after the other, they could deadlock with an event that a member with both kinds left.
    among = await _locked_grants(db, *which)
    await queue.call_off_where(db, among, *taken)
    if resumed:
        await _begin_grace(db, among, *kept)


async def call_off_removals(
    db: AsyncSession,
    server_id: int,
    roles: Collection[str] | None = None,
    *,
    of: str | None = None,
    of_queued: bool = False,
) -> None:
    """Cancel the removals of these roles, or of all roles, that are in progress. Queue the members first.

    `of` limits this to one member.

    Use `of_queued` if only the members concerned by a change were queued: the removals of all others continue, because
    nothing would begin them again.
    """
    queued = [queue.IS_QUEUED] if of_queued else []
    await queue.call_off_where(db, *_grants_of(server_id, roles, of), *queued)


async def begin_grace_again(db: AsyncSession, server_id: int, rule_ids: Collection[int]) -> None:
    """Restart the grace times of roles that these rules gave: while the rules did not decide, nothing was checked.

    A member may have bought back in that time. Queue the members first.
    """
    await _begin_grace(db, *_given_by(server_id, rule_ids))


def _given_by(server_id: int, rule_ids: Collection[int]) -> list[ColumnElement[bool]]:
    """Return the conditions on a server's grants of roles that these rules gave."""
    return [col(Grant.server_id) == server_id, col(Grant.rule_ids).op("&&")(list(rule_ids))]


async def begin_grace_of_kept(
    db: AsyncSession, server_id: int, roles: Collection[str] | None = None, *, of: str | None = None
) -> None:
    """Begin the grace times of these roles (None: all), of one member or of all, when nothing keeps them any more.

    None ran until now, whenever the rules first said no. Queue the members first.
    """
    await _begin_grace(db, *_grants_of(server_id, roles, of))


async def _begin_grace(db: AsyncSession, *which: ColumnElement[bool]) -> None:
    await db.execute(update(Grant).where(queue.in_order_of_key(*which, *_GRACE_RUNS)).values(no_since=func.now()))


_GRACE_RUNS = (col(Grant.state).in_(("held", "giving")), col(Grant.no_since).is_not(None))
"""The conditions on grants whose grace time runs."""


def _grants_of(server_id: int, roles: Collection[str] | None, member: str | None = None) -> list[ColumnElement[bool]]:
    """Return the conditions on a server's grants of these roles (None: any), of one member or of all."""
    return [
        col(Grant.server_id) == server_id,
        true() if roles is None else col(Grant.role_id).in_(roles),
        true() if member is None else col(Grant.discord_id) == member,
    ]


async def refused(db: AsyncSession, server_id: int, role_id: str, reason: str) -> None:
    """Pause a role's rules because Discord refused a change, and schedule the next try with a growing delay.

    Several refusals of concurrent changes count as one.
    """
    await pause_role(db, server_id, role_id, reason, REFUSED)
    await db.execute(
        """
        INSERT INTO role_refusal (server_id, role_id, count, next_at)
        VALUES (:server, :role, 1, now() + make_interval(secs => (CAST(:pauses AS integer[]))[1]))
        ON CONFLICT (server_id, role_id) DO UPDATE SET
            count = role_refusal.count + 1,
            next_at = now() + make_interval(
                secs => (CAST(:pauses AS integer[]))[LEAST(role_refusal.count + 1, :longest)])
        WHERE role_refusal.next_at <= now()
        """,
        {"server": server_id, "role": role_id, "pauses": list(RETRY_PAUSES), "longest": len(RETRY_PAUSES)},
    )


async def accepted(db: AsyncSession, server_id: int, role_id: str) -> None:
    """Resume the rules of a role after Discord accepted a change that it had refused."""
    await lock_rules(db, server_id, [role_id])  # before the refusal, as where Discord refuses the next change
    await db.execute(
        "DELETE FROM role_refusal WHERE server_id = :server AND role_id = :role", {"server": server_id, "role": role_id}
    )
    await _change_grants(db, resumed=await _resume_rules(db, server_id, role_id, col(Rule.pause_cause) == REFUSED))


async def retry_refused(db: AsyncSession) -> int:
    """Resume the rules of refused roles whose delay is over and for which no change waits; return how many roles.

    The next reconcile then decides on a change, which is the next try. A change for a member in membership screening is
    not tried, perhaps never, so it does not count as waiting.
    """
    found = await db.execute(
        """
        SELECT f.server_id, f.role_id FROM role_refusal f JOIN server s ON s.id = f.server_id AND s.bot_invited
        WHERE f.next_at <= now()
        AND EXISTS (SELECT 1 FROM rule r WHERE r.server_id = f.server_id AND r.role_id = f.role_id
                    AND r.state = 'paused' AND r.pause_cause = 'refused' AND r.deleted_at IS NULL)
        AND NOT EXISTS (SELECT 1 FROM "grant" g WHERE g.server_id = f.server_id AND g.role_id = f.role_id
                        AND g.state = 'giving'
                        AND NOT EXISTS (SELECT 1 FROM member m WHERE m.server_id = g.server_id
                                        AND m.discord_id = g.discord_id AND m.pending))
        ORDER BY f.next_at LIMIT 100
        """
    )
    due = [(int(server_id), str(role_id)) for server_id, role_id in found.all()]
    if not due:
        return 0
    # The rules come before the refusals, as where Discord refuses a change: its next try is later after that.
    await lock_rules_where(db, tuple_(col(Rule.server_id), col(Rule.role_id)).in_(due))
    key = col(RoleRefusal.server_id), col(RoleRefusal.role_id)
    still = select(*key).where(tuple_(*key).in_(due), col(RoleRefusal.next_at) <= func.now())
    roles = sorted((await db.exec(still.with_for_update(skip_locked=True))).all())
    resumed = [
        one
        for server_id, role_id in roles
        for one in await _resume_rules(db, server_id, role_id, col(Rule.pause_cause) == REFUSED)
    ]
    await _change_grants(db, resumed=resumed)
    return len(roles)


async def forget_refusals(db: AsyncSession) -> None:
    """Delete the refusals of roles whose next try has been due for a day and for which no rule is paused by them."""
    await db.execute(
        """
        DELETE FROM role_refusal f WHERE f.next_at < now() - interval '1 day'
        AND NOT EXISTS (SELECT 1 FROM rule r WHERE r.server_id = f.server_id AND r.role_id = f.role_id
                        AND r.pause_cause = 'refused')
        """
    )


async def _resume_rules(db: AsyncSession, server_id: int, role_id: str, which: ColumnElement[bool]) -> list[_RuleOf]:
    """Resume the paused rules of a role that meet the condition, and record it; return them.

    `_change_grants` has to follow.
    """
    result = await db.execute(
        update(Rule)
        .where(
            col(Rule.server_id) == server_id,
            col(Rule.role_id) == role_id,
            col(Rule.state) == "paused",
            which,
            col(Rule.deleted_at).is_(None),
        )
        .values(state="active", pause_reason=None, pause_cause=None, paused_at=None, updated_at=func.now())
        .returning(col(Rule.id))
    )
    resumed = [_RuleOf(server_id, role_id, int(rule_id)) for (rule_id,) in result.all()]
    batch = uuid4()
    await audit.record_all(
        db, [audit.line("rule.resumed", **one._asdict(), batch=batch, data={"healed": True}) for one in resumed]
    )
    return resumed


async def role_gone(db: AsyncSession, server_id: int, role_id: str) -> None:
    """Record that a role was deleted in Discord: delete its grants, and pause its rules until another is chosen."""
    await roles_judged(db, server_id, gone=[role_id])


async def role_renamed(db: AsyncSession, server_id: int, role_id: str, name: str) -> None:
    """Store a role's new name in its rules, those of deleted ones too, because the log names roles by them."""
    of_role = (col(Rule.server_id) == server_id, col(Rule.role_id) == role_id)
    await db.execute(update(Rule).where(*of_role).values(role_name=name))


async def role_recolored(db: AsyncSession, server_id: int, role_id: str, was: int, color: int) -> None:
    """Store a role's new colour in its rules; a colour that a program chose for a rule stays."""
    of_role = (col(Rule.server_id) == server_id, col(Rule.role_id) == role_id)
    same = func.upper(col(Rule.role_color)) == color_hex(was)
    await db.execute(update(Rule).where(*of_role, same).values(role_color=color_hex(color)))


async def sweep_deleted(db: AsyncSession, rule_ids: Collection[int] | None = None) -> int:
    """Delete the rows of deleted rules that no grant depends on any more, of `rule_ids` or of all; return how many.

    Each removal of a role passes `rule_ids`: to look through the deleted rules of all servers takes long. Housekeeping
    deletes those that are locked now.
    """
    # A change of the role in Discord locks its rules before the grants, of which a removal has locked one.
    which = "" if rule_ids is None else "AND r.id = ANY(CAST(:rules AS integer[]))"
    result = await db.execute(
        f"""
        DELETE FROM rule WHERE id = ANY(ARRAY(
            SELECT r.id FROM rule r WHERE r.deleted_at IS NOT NULL {which} AND NOT EXISTS (
                SELECT 1 FROM "grant" g WHERE g.server_id = r.server_id AND r.id = ANY(g.rule_ids))
            FOR UPDATE OF r SKIP LOCKED))
        RETURNING id
        """,
        {} if rule_ids is None else {"rules": list(rule_ids)},
    )
    return len(result.all())
