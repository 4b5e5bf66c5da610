"""Automatic changes to rules: pause, resume, and delete those that are settled; how a paused rule can resume."""

from collections.abc import Collection, Sequence
from uuid import uuid4

from sqlalchemy import ColumnElement, delete, func, true, update
from sqlmodel import col

from locales import N_
from models import Breaker, Grant, Rule
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
    """Pause every deciding rule of a role with the reason; return how many. Given roles stay.

    A rule paused for another cause gets the new one, and a rule paused for the same cause the new words, which name the
    role. A rule that an admin paused stays unchanged, and so does a rule beyond the limits, because it would be resumed
    once the new cause ends.
    """
    same = (col(Rule.server_id) == server_id, col(Rule.role_id) == role_id, col(Rule.pause_cause) == cause)
    await db.execute(update(Rule).where(*same, col(Rule.pause_reason) != reason).values(pause_reason=reason))
    return await _pause(db, server_id, reason, cause, col(Rule.role_id) == role_id)


async def pause_all(db: AsyncSession, server_id: int, reason: str, cause: str) -> int:
    """Pause every deciding rule of a server."""
    return await _pause(db, server_id, reason, cause, true())


async def pause_rules(db: AsyncSession, server_id: int, rules: Sequence[int], reason: str, cause: str) -> int:
    """Pause these deciding rules of a server."""
    return await _pause(db, server_id, reason, cause, col(Rule.id).in_(rules))


async def _pause(db: AsyncSession, server_id: int, reason: str, cause: str, which: ColumnElement[bool]) -> int:
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
    paused = [(int(rule_id), str(role_id)) for rule_id, role_id in result.all()]
    batch = uuid4()
    await audit.record_all(
        db,
        [
            audit.line(
                "rule.paused", server_id=server_id, role_id=role_id, rule_id=rule_id, batch=batch,
                data={"reason": reason, "cause": cause},
            )
            for rule_id, role_id in paused
        ],
    )  # fmt: skip
    if paused:
        by_these = col(Grant.rule_ids).op("&&")([rule_id for rule_id, _ in paused])
        of_roles = col(Grant.role_id).in_({role_id for _, role_id in paused})
        await queue.call_off_where(db, col(Grant.server_id) == server_id, of_roles, by_these)
        await queue.invalidate_running(db, server_id)
    return len(paused)


async def decide_again(db: AsyncSession, server_id: int, roles: Collection[str] | None = None) -> None:
    """Queue a server's members after rules for these roles (None: any) changed, and cancel removals of the roles."""
    # Before the other writes, as in all code that writes about members.
    await queue.mark_server(db, server_id, queue.CHANGED)
    await call_off_removals(db, server_id, roles)


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
    await _begin_grace(db, col(Grant.server_id) == server_id, col(Grant.rule_ids).op("&&")(list(rule_ids)))


async def begin_grace_of_kept(
    db: AsyncSession, server_id: int, roles: Collection[str] | None = None, *, of: str | None = None
) -> None:
    """Begin the grace times of these roles (None: all), of one member or of all, when nothing keeps them any more.

    None ran until now, whenever the rules first said no. Queue the members first.
    """
    await _begin_grace(db, *_grants_of(server_id, roles, of))


async def _begin_grace(db: AsyncSession, *which: ColumnElement[bool]) -> None:
    waiting = col(Grant.state).in_(("held", "giving")), col(Grant.no_since).is_not(None)
    await db.execute(update(Grant).where(queue.in_order_of_key(*which, *waiting)).values(no_since=func.now()))


def _grants_of(server_id: int, roles: Collection[str] | None, member: str | None) -> list[ColumnElement[bool]]:
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
    await db.execute(
        "DELETE FROM role_refusal WHERE server_id = :server AND role_id = :role",
        {"server": server_id, "role": role_id},
    )
    await _resume(db, server_id, role_id, col(Rule.pause_cause) == REFUSED)


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
        ORDER BY f.next_at LIMIT 100 FOR UPDATE OF f SKIP LOCKED
        """
    )
    roles = [(int(server_id), str(role_id)) for server_id, role_id in found.all()]
    for server_id, role_id in roles:
        await _resume(db, server_id, role_id, col(Rule.pause_cause) == REFUSED)
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


async def resume_role(db: AsyncSession, server_id: int, role_id: str) -> int:
    """Resume the rules of a role that may be granted again; return how many.

    Rules paused because Discord refused a change stay paused: their role never looked wrong, so each role event would
    cause the next refusal. Rules beyond the limits stay paused too: the cause is not in their role.
    """
    return await _resume(db, server_id, role_id, col(Rule.pause_cause).not_in([REFUSED, TOO_MANY]))


async def _resume(db: AsyncSession, server_id: int, role_id: str, which: ColumnElement[bool]) -> int:
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
    resumed = [int(rule_id) for (rule_id,) in result.all()]
    batch = uuid4()
    await audit.record_all(
        db,
        [
            audit.line(
                "rule.resumed", server_id=server_id, role_id=role_id, rule_id=rule_id, batch=batch,
                data={"healed": True},
            )
            for rule_id in resumed
        ],
    )  # fmt: skip
    if resumed:
        await decide_again(db, server_id, [role_id])
        await begin_grace_again(db, server_id, resumed)
    return len(resumed)


async def role_gone(db: AsyncSession, server_id: int, role_id: str) -> None:
    """Record that a role was deleted in Discord: delete its grants, and pause its rules until another is chosen.

    No removal of it waits for an admin any more.
    """
    reason = N_("The role was deleted in Discord. Choose another role for this rule.")
    await pause_role(db, server_id, role_id, reason, GONE)
    of_role = queue.in_order_of_key(col(Grant.server_id) == server_id, col(Grant.role_id) == role_id)
    gone = delete(Grant).where(of_role)
    given_by: list[list[int]] = [rule_ids for (rule_ids,) in await db.execute(gone.returning(col(Grant.rule_ids)))]
    await db.execute(delete(Breaker).where(col(Breaker.server_id) == server_id, col(Breaker.role_id) == role_id))
    if given_by:
        data = {"holders": len(given_by)}
        await audit.record(db, audit.line("role.deleted", server_id=server_id, role_id=role_id, data=data))
        await sweep_deleted(db, {rule_id for rule_ids in given_by for rule_id in rule_ids})


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

    Each removal of a role passes `rule_ids`: to look through the deleted rules of all servers takes long.
    """
    which = "" if rule_ids is None else "AND r.id = ANY(CAST(:rules AS integer[]))"
    result = await db.execute(
        f"""
        DELETE FROM rule r WHERE r.deleted_at IS NOT NULL {which} AND NOT EXISTS (
            SELECT 1 FROM "grant" g WHERE g.server_id = r.server_id AND r.id = ANY(g.rule_ids))
        RETURNING r.id
        """,
        {} if rule_ids is None else {"rules": list(rule_ids)},
    )
    return len(result.all())
