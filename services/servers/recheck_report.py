"""What came of looking at a member: which roles were added and removed, which stay, and what is unknown and why."""

from dataclasses import dataclass

from sqlalchemy import text

from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.answer import Answer
from services.core.errors import MemberNotFound
from services.roles.outbox import RESTS
from services.servers import explain
from services.servers.explain import MemberWhy, RoleWhy, RuleWhy


@dataclass(frozen=True, slots=True)
class RoleLine:
    """A role's name and what is to be said about it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RecheckReport:
    """The roles of one server for one member; `settled` is False while something is still under way."""

    added: tuple[RoleLine, ...]
    removed: tuple[RoleLine, ...]
    stays: tuple[RoleLine, ...]
    missing: tuple[RoleLine, ...]
    unknown: tuple[RoleLine, ...]
    settled: bool


async def held(db: AsyncSession, actor: Actor, server_id: int) -> frozenset[str]:
    """The roles with rules that the member has now, to be compared with later."""
    try:
        seen = await explain.own(db, actor, server_id)
    except MemberNotFound:
        return frozenset()
    return frozenset(role.role_id for role in seen.roles if role.held)


async def settled(db: AsyncSession, actor: Actor, server_id: int) -> bool:
    """Whether nobody is looking at the member any more, and nothing is being given or taken.

    Who waits for a second try because something is unknown counts as settled: that may take long.
    """
    result = await db.execute(
        text(
            f"""
            SELECT EXISTS (SELECT 1 FROM due WHERE kind = 'member' AND key = :key AND attempts = 0
                           AND due_at <= clock_timestamp())
                OR EXISTS (SELECT 1 FROM "grant" g WHERE g.server_id = :server AND g.discord_id = :who
                           AND g.state IN ('giving', 'taking') AND g.attempts < 2 AND NOT {RESTS})
            """
        ),
        {"key": f"{server_id}:{actor.discord_id}", "server": server_id, "who": actor.discord_id},
    )
    return not result.scalar_one()


async def since(db: AsyncSession, actor: Actor, server_id: int, before: frozenset[str]) -> RecheckReport:
    """What is different from `before` (role ids), and why the rest is as it is. Raises MemberNotFound."""
    seen = await explain.own(db, actor, server_id)
    why_unknown = await _doubt(db, actor, server_id)
    return compare(seen, before, why_unknown, settled=await settled(db, actor, server_id))


def compare(seen: MemberWhy, before: frozenset[str], why_unknown: str | None, *, settled: bool) -> RecheckReport:
    """The same from what is known, without a look at anything."""
    added = [_line(role) for role in seen.roles if role.held and role.role_id not in before]
    removed = [_lack(role) for role in seen.roles if not role.held and role.role_id in before]
    stays = [_line(role) for role in seen.roles if role.held and role.role_id in before]
    rest = [role for role in seen.roles if not role.held and role.role_id not in before]
    unknown = [RoleLine(role.role_name, why_unknown or _reason(role)) for role in seen.roles if _unknown(role)]
    missing = [_lack(role) for role in rest if not _unknown(role)]
    return RecheckReport(tuple(added), tuple(removed), tuple(stays), tuple(missing), tuple(unknown), settled)


def _line(role: RoleWhy) -> RoleLine:
    return RoleLine(role.role_name, role.next)


def _lack(role: RoleWhy) -> RoleLine:
    """What each rule of the role asks for in vain; where none does, what comes next."""
    lacks = [_missed(rule) for rule in role.rules if rule.state == "active" and rule.outcome == Answer.NO.value]
    return RoleLine(role.role_name, "; ".join(lacks) or role.next)


def _missed(rule: RuleWhy) -> str:
    """Needed and held, of a rule that asks for one thing; of a composed one /why tells all parts."""
    if len(rule.requirements) != 1 or rule.requirements[0].outcome != Answer.NO.value:
        return f"{rule.name} is not fulfilled"
    (one,) = rule.requirements
    return f"{one.text}: needed {one.needed}, held {one.held or 0}" + (f", {one.reason}" if one.reason else "")


def _unknown(role: RoleWhy) -> bool:
    answers = {rule.outcome for rule in role.rules if rule.state == "active"}
    return Answer.UNKNOWN.value in answers and Answer.YES.value not in answers


def _reason(role: RoleWhy) -> str:
    reasons = [one.reason for rule in role.rules for one in rule.requirements if one.outcome == Answer.UNKNOWN.value]
    return next((reason for reason in reasons if reason), "not everything could be read yet")


async def _doubt(db: AsyncSession, actor: Actor, server_id: int) -> str | None:
    """Why the last look at the member could not answer everything, if so."""
    result = await db.execute(
        text("SELECT reason FROM due WHERE kind = 'member' AND key = :key AND attempts > 0"),
        {"key": f"{server_id}:{actor.discord_id}"},
    )
    row = result.first()
    return str(row[0]) if row is not None and row[0] else None
