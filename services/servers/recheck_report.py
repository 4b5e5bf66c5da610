"""The report of a re-check: roles added and removed, roles that stay, and what is unknown and why."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from locales import _
from locales.stored_texts import said
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.answer import Answer
from services.core.errors import MemberNotFound
from services.servers import explain
from services.servers.explain import MemberWhy, RoleWhy, RuleWhy

EVENTS_LATE = timedelta(seconds=10)
"""How long after a removal Discord's event of an earlier change may arrive and show the role again."""


@dataclass(frozen=True, slots=True)
class RoleLine:
    """A role's name and a sentence about it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RecheckReport:
    """The roles of one server for one member; `settled` is False while something is in progress.

    `doubt` is why the last look could not read everything: of roles that are not unknown, what it could not read is
    reported as it was read before.
    """

    added: tuple[RoleLine, ...]
    removed: tuple[RoleLine, ...]
    stays: tuple[RoleLine, ...]
    missing: tuple[RoleLine, ...]
    unknown: tuple[RoleLine, ...]
    settled: bool
    doubt: str | None = None
    taken: tuple[str, ...] = ()
    """The ids of the roles in `removed`, in the same order."""


async def held_role_ids(db: AsyncSession, actor: Actor, server_id: int) -> frozenset[str]:
    """Return the roles with rules that the member has now, for a later comparison."""
    try:
        seen = await explain.own(db, actor, server_id)
    except MemberNotFound:
        return frozenset()
    return frozenset(role.role_id for role in seen.roles if _has(role))


def _has(role: RoleWhy, taken: Collection[str] = ()) -> bool:
    """Return whether the member has the role by Discord's last event or by our ledger.

    The event of an earlier change may come after our record of a later one, so the stored roles alone may lack what we
    have just given, and may show what we have just `taken`.
    """
    return role.granted_by_us or (role.held and role.role_id not in taken)


_ONLY_BY_PAUSED_RULES = """
    (g.state = 'giving' AND g.gift_since IS NULL AND cardinality(g.rule_ids) > 0 AND NOT EXISTS (
        SELECT 1 FROM rule r WHERE r.server_id = g.server_id AND r.role_id = g.role_id AND r.state = 'active'
        AND r.deleted_at IS NULL))
"""
"""SQL condition on a grant `g`: the role is not given because every rule for it is paused."""


async def settled(db: AsyncSession, actor: Actor, server_id: int) -> bool:
    """Return whether the member is not being reconciled and no role change is in progress.

    A member who waits for a retry of something unknown counts as settled, because that may take long.
    """
    result = await db.execute(
        f"""
        SELECT EXISTS (SELECT 1 FROM due WHERE kind = 'member' AND key = :key AND attempts = 0
                       AND due_at <= clock_timestamp())
            OR EXISTS (SELECT 1 FROM "grant" g WHERE g.server_id = :server AND g.discord_id = :who
                       AND g.state IN ('giving', 'taking') AND g.attempts < 2 AND NOT {_ONLY_BY_PAUSED_RULES})
        """,
        {"key": f"{server_id}:{actor.discord_id}", "server": server_id, "who": actor.discord_id},
    )
    return not result.scalar_one()


async def doubt(db: AsyncSession, actor: Actor, server_id: int) -> str | None:
    """Return why the last reconcile could not answer everything, or None."""
    result = await db.execute(
        "SELECT reason FROM due WHERE kind = 'member' AND key = :key AND attempts > 0",
        {"key": f"{server_id}:{actor.discord_id}"},
    )
    row = result.first()
    return said(str(row[0])) if row is not None and row[0] else None


async def report_since(db: AsyncSession, actor: Actor, server_id: int, before: frozenset[str]) -> RecheckReport:
    """Return the differences from `before` (role ids), and the reasons for the other roles. Raises MemberNotFound."""
    seen = await explain.own(db, actor, server_id)
    why_unknown, taken = await doubt(db, actor, server_id), await _just_taken(db, actor, server_id)
    return compare(seen, before, why_unknown, taken, settled=await settled(db, actor, server_id))


def compare(
    seen: MemberWhy, before: frozenset[str], why_unknown: str | None, taken: Collection[str] = (), *, settled: bool
) -> RecheckReport:
    """Return the report from known facts, without any read."""
    has = [role for role in seen.roles if _has(role, taken)]
    lacks = [role for role in seen.roles if not _has(role, taken)]
    added = [_line(role) for role in has if role.role_id not in before]
    removed = [_lack(role) for role in lacks if role.role_id in before]
    stays = [_line(role) for role in has if role.role_id in before]
    unknown = [RoleLine(role.role_name, why_unknown or _reason(role)) for role in seen.roles if _unknown(role)]
    missing = [_lack(role) for role in lacks if role.role_id not in before and not _unknown(role)]
    # The line of an unknown role has the reason already.
    doubt = None if all(_unknown(role) for role in seen.roles) else why_unknown
    gone = tuple(role.role_id for role in lacks if role.role_id in before)
    return RecheckReport(
        tuple(added), tuple(removed), tuple(stays), tuple(missing), tuple(unknown), settled, doubt, gone
    )


def _line(role: RoleWhy) -> RoleLine:
    return RoleLine(role.role_name, role.next)


def _lack(role: RoleWhy) -> RoleLine:
    """Return what the member lacks for each rule of the role or, if no rule says no, what happens next."""
    lacks = [_missed(rule) for rule in role.rules if rule.state == "active" and rule.outcome == Answer.NO.value]
    return RoleLine(role.role_name, "; ".join(lacks) or role.next)


def _missed(rule: RuleWhy) -> str:
    """Return the needed and held amounts of a rule with one requirement; for a composed rule, /why shows all parts."""
    if len(rule.requirements) != 1 or rule.requirements[0].outcome != Answer.NO.value:
        return _("{name} is not fulfilled").format(name=rule.name)
    (one,) = rule.requirements
    needed, held = one.amounts
    told = _("{requirement}: needed {needed}, held {held}").format(requirement=one.text, needed=needed, held=held)
    return _("{text}, {reason}").format(text=told, reason=one.reason) if one.reason else told


def _unknown(role: RoleWhy) -> bool:
    answers = {rule.outcome for rule in role.rules if rule.state == "active"}
    return Answer.UNKNOWN.value in answers and Answer.YES.value not in answers


def _reason(role: RoleWhy) -> str:
    reasons = [one.reason for rule in role.rules for one in rule.requirements if one.outcome == Answer.UNKNOWN.value]
    return next((reason for reason in reasons if reason), _("not everything could be read yet"))


async def _just_taken(db: AsyncSession, actor: Actor, server_id: int) -> frozenset[str]:
    """Return the roles that we took from the member a moment ago; Discord's events about them may still come."""
    result = await db.execute(
        "SELECT role_id FROM event WHERE server_id = :server AND subject = :who AND kind = 'role.taken' "
        "AND at > now() - CAST(:moment AS interval)",
        {"server": server_id, "who": actor.discord_id, "moment": EVENTS_LATE},
    )
    return frozenset(str(role_id) for (role_id,) in result.all())
