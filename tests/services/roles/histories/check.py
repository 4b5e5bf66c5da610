"""What must be so in every history: when a removal is sent, and at the end."""

from sqlalchemy import func
from sqlmodel import col, select

from models import Breaker, Farewell, Grant, Server, ServerMove, Truce, transaction
from models.db.session import AsyncSession
from services.core.answer import Answer
from services.roles import breaker
from tests.services.roles.histories.discord import NAMES, ROLES
from tests.services.roles.histories.history import History
from tests.services.roles.histories.truth import Decision


async def removal(history: History, who: str, role: str) -> None:
    """Note a removal that arrives at Discord although the member still holds, or something keeps the role.

    A change after the decision may come too late; what was read or reported before, and what an admin decided, may
    not. The role writer takes any error for its own, so faults are noted and not raised.
    """
    async with transaction() as db:
        server = await db.get_one(Server, history.server)
        rules = await history.living_rules(db)
        grant = (await db.exec(select(Grant).where(Grant.discord_id == who, Grant.role_id == role))).first()
        waits = (await db.exec(select(Breaker).where(Breaker.role_id == role, *breaker.WAITING))).first()
        decision = history.decisions.get((who, role), Decision())
        said = f"read in step {decision.read}, written in step {decision.written}"
        history.say(f"    Discord is asked to take {NAMES[role]} from {history.name(who)}, {said}")
        faults: list[str] = []
        if grant is None or grant.state != "taking":
            faults.append(f"the grant is {grant and grant.state}")
        # What only an admin's decision keeps is not kept for somebody who asked to be forgotten.
        is_leaving = await db.get(Farewell, who) is not None
        if not is_leaving and (who in server.protected_members or role in server.protected_roles):
            faults.append("it is protected")
        if waits is not None:
            faults.append("the breaker waits for an admin")
        if not is_leaving and grant is not None and await _is_moved(history, db, grant):
            faults.append("an open move keeps it")
        if not is_leaving and grant is not None and grant.gift_since is not None:
            faults.append("an admin let the member keep it")
        truces = select(Truce).where(Truce.discord_id == who, Truce.role_id == role, col(Truce.until) > func.now())
        if (await db.exec(truces)).first() is not None:
            faults.append("it is left alone")
        if not server.bot_invited:
            faults.append("the bot is not in the server")
        for rule, tree in rules:
            if rule.state != "active" and grant is not None and rule.id in grant.rule_ids:
                faults.append(f"rule {rule.id}, which gave it, is {rule.state}")
            decides = rule.role_id == role and rule.state == "active"
            if decides and history.truth.says(tree, who, decision) is Answer.YES:
                faults.append(f"rule {rule.id} has said yes since before the decision")
    for fault in faults:
        history.say(f"    WRONG: {fault}")
        history.wrong.append(f"{NAMES[role]} was taken from {history.name(who)}: {fault}")


async def _is_moved(history: History, db: AsyncSession, grant: Grant) -> bool:
    """Return whether an open move keeps the role: somebody else had given it, or the member has no wallet."""
    moves = await db.exec(select(ServerMove.roles).where(col(ServerMove.state) == "open"))
    if all(grant.role_id not in roles for roles in moves.all()):
        return False
    return grant.had_before or history.truth.is_without_wallet(grant.discord_id)


async def end(history: History) -> list[str]:
    """Return what is not as it should be once everything could settle: roles that are missing, kept or still open."""
    async with transaction() as db:
        found = End(history, db)
        await found.read()
        return [
            fault
            for who in history.people
            if who in history.discord.roles_of
            for role in ROLES
            for fault in found.faults(who, role)
        ]


class End:
    """The stored state at the end of a history."""

    def __init__(self, history: History, db: AsyncSession) -> None:
        self.history = history
        self.db = db

    async def read(self) -> None:
        """Read the state."""
        db = self.db
        self.server = await db.get_one(Server, self.history.server)
        self.rules = await self.history.living_rules(db)
        self.resting = {rule.id for rule, _ in self.rules if rule.state != "active"}
        self.grants = {(one.discord_id, one.role_id): one for one in (await db.exec(select(Grant))).all()}
        self.leaving = set((await db.exec(select(Farewell.discord_id))).all())
        """Those who asked to be forgotten: what only an admin's decision keeps is not kept for them."""
        self.waiting = {one.role_id for one in (await db.exec(select(Breaker).where(*breaker.WAITING))).all()}
        moves = await db.exec(select(ServerMove.roles).where(col(ServerMove.state) == "open"))
        self.moving = {role for roles in moves.all() for role in roles}

    def faults(self, who: str, role: str) -> list[str]:
        """Return what is wrong with one role of one member."""
        has, grant = role in self.history.discord.roles_of[who], self.grants.get((who, role))
        holds = any(
            self.history.truth.says(tree, who) is Answer.YES
            for rule, tree in self.rules
            if rule.role_id == role and rule.state == "active"
        )
        faults: list[str] = []
        if holds and not has and not self._is_left_to_others(who, role, grant):
            faults.append("holds and lacks")
        if has and not holds and not self._may_keep(who, role, grant):
            faults.append("does not hold and keeps")
        if grant is not None and grant.state in {"giving", "taking"} and not self._rests(who, role, grant):
            faults.append(f"is still {grant.state}")
        line = "" if grant is None else f" ({grant.state}, rules {grant.rule_ids}, {grant.last_error})"
        return [f"{self.history.name(who)} {fault} {NAMES[role]}{line}" for fault in faults]

    def _is_left_to_others(self, who: str, role: str, grant: Grant | None) -> bool:
        return grant is not None and grant.state == "lost" and (who, role) in self.history.moved_by_others

    def _rests(self, who: str, role: str, grant: Grant) -> bool:
        """Return whether a pause, the breaker or a protection holds a change back."""
        paused = bool(self.resting & set(grant.rule_ids))
        return paused or role in self.waiting or self._is_protected(who, role)

    def _may_keep(self, who: str, role: str, grant: Grant | None) -> bool:
        """Return whether a role stays although no rule says yes: it is not ours, a gift, held back, or being moved."""
        if grant is None:
            return (who, role) in self.history.moved_by_others or self._is_protected(who, role)
        moved = role in self.moving and (grant.had_before or self.history.truth.is_without_wallet(who))
        gift = grant.gift_since is not None and who not in self.leaving
        return gift or moved or self._rests(who, role, grant)

    def _is_protected(self, who: str, role: str) -> bool:
        if who in self.leaving:
            return False
        return who in self.server.protected_members or role in self.server.protected_roles
