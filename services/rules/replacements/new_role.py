"""Replacement of a role: every rule that gives the old role gives the new one from now on, all at once.

Renaming a role in Discord needs none of this: rules know a role by its id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from sqlalchemy import func
from sqlmodel import col, select

from gateways import Gateways
from locales import _
from models import Grant, Rule
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.core.errors import Conflict, FieldRefused
from services.core.json_view import json_view
from services.guilds import permissions
from services.guilds.permissions import Rights
from services.guilds.role_safety import taking_refusal
from services.rules import limits, pausing, rules
from services.rules.replacements.contract_migrations import LeftRule
from services.rules.rule_rows import apply as change
from services.rules.rule_rows import copy_of, document, grantable


@dataclass(frozen=True, slots=True)
class RoleOrder:
    """The role `old` became the role `new`, by their Discord ids."""

    old: str
    new: str


@json_view
class RuleOfRole:
    """A rule that is changed to give the new role; `state` is its state after that."""

    id: int
    name: str
    state: str


@json_view
class RoleReplacement:
    """What replacing a role does, or did, to a server's rules; `members` counts those who have the old role from us.

    They get the new role first and lose the old one after that. `batch` undoes it.
    """

    old_name: str
    new_name: str
    members: int
    rules: tuple[RuleOfRole, ...]
    left: tuple[LeftRule, ...]
    applied: bool
    batch: str | None = None


async def preview(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: RoleOrder
) -> RoleReplacement:
    """Return what replacing the role would do to the rules, without changing any.

    Raises ServerNotFound unless the actor runs the server, FieldRefused, Conflict (the bot is not in it).
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    nothing = await db.begin_nested()
    try:
        done, _ = await _write(db, found, actor, order)
        return replace(done, applied=False, batch=None)
    finally:
        await nothing.rollback()


async def apply(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: RoleOrder) -> RoleReplacement:
    """Change all rules for the old role to give the new one, in one transaction. Raises as `preview` does."""
    found = await permissions.require_admin(db, outside, actor, server_id)
    done, resumed = await _write(db, found, actor, order)
    if not done.rules:
        told = _("None of the rules for this role can be changed: {reason}")
        raise Conflict(told.format(reason=done.left[0].why if done.left else ""))
    await pausing.decide_again(db, server_id, resumed=resumed)
    return done


async def proposed(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: RoleOrder
) -> list[tuple[Rule, Rule]]:
    """Return the rules that change, each before and after. Raises as `preview` does."""
    found = await permissions.require_admin(db, outside, actor, server_id)
    _check(found, order)
    pairs = list[tuple[Rule, Rule]]()
    for rule in await _of_role(db, server_id, order.old):
        after = copy_of(rule)
        if _changed(after, found, order) is None:
            pairs.append((rule, after))
    return pairs


async def put_back(
    db: AsyncSession, found: Rights, changed: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """Change a batch's rules back to their former role; return the names of these rules, and those of the others.

    `changed` are the documents of the log's lines: `rule` (its id), `before` and `after`. A rule that gives another
    role by now stays unchanged. Raises Conflict if all of them do, FieldRefused for a role that cannot be granted.
    """
    server_id = found.server.id or 0
    await limits.lock(db, server_id)
    back, left, resumed = list[str](), list[str](), list[int]()
    for line in changed:
        before, after = line["before"], line["after"]
        rule = await db.get(Rule, line["rule"], populate_existing=True, with_for_update=True)
        if rule is None or rule.deleted_at is not None or rule.role_id != after["roleId"]:
            left.append(str(after["name"]))
            continue
        state = rule.state
        change(rule, {"roleId": before["roleId"], "roleColor": before["roleColor"]}, found)
        if state != rule.state:
            resumed.append(rule.id or 0)
        db.add(rule)
        await db.flush()
        back.append(rule.name)
    if not back:
        raise Conflict(_("The rules were changed again since. Undo the newer changes first, or edit the rules."))
    await pausing.decide_again(db, server_id, resumed=resumed)
    return back, left


def _check(found: Rights, order: RoleOrder) -> str:
    """Return the new role's name. Raises FieldRefused (`oldRole`, `newRole`), Conflict."""
    guild, person, _bot = found.guild_with_bot()
    if reason := taking_refusal(guild.roles, order.old, person):
        raise FieldRefused("oldRole", reason)
    if order.old == order.new:
        raise FieldRefused("newRole", _("Choose another role than the old one."))
    return grantable(found, order.new, "newRole").name


async def _of_role(db: AsyncSession, server_id: int, role_id: str, *, lock: bool = False) -> Sequence[Rule]:
    """Return the server's rules for a role, oldest first. Raises FieldRefused if there is none."""
    wanted = (
        select(Rule)
        .where(Rule.server_id == server_id, Rule.role_id == role_id, col(Rule.deleted_at).is_(None))
        .order_by(col(Rule.id))
        .execution_options(populate_existing=True)
    )
    found = (await db.exec(wanted.with_for_update() if lock else wanted)).all()
    if not found:
        raise FieldRefused("oldRole", _("No rule of this server gives this role."))
    return found


def _changed(rule: Rule, found: Rights, order: RoleOrder) -> str | None:
    """Change the rule to give the new role; return why it cannot, or None."""
    try:
        change(rule, {"roleId": order.new}, found)
    except FieldRefused as fault:
        return fault.message
    return None


async def _write(
    db: AsyncSession, found: Rights, actor: Actor, order: RoleOrder
) -> tuple[RoleReplacement, Sequence[int]]:
    """Change the rules; return the result, and the ids of the rules that were paused until now."""
    server_id, batch = found.server.id or 0, uuid4()
    new_name = _check(found, order)
    await limits.lock(db, server_id)
    concerned = await _of_role(db, server_id, order.old, lock=True)
    old_name = concerned[-1].role_name or order.old
    done, left, lines = list[RuleOfRole](), list[LeftRule](), list[dict[str, Any]]()
    resumed = list[int]()
    for rule in concerned:
        before = document(rule)
        if (reason := _changed(rule, found, order)) is not None:
            left.append(LeftRule(rule.id or 0, rule.name, reason))
            continue
        db.add(rule)
        await db.flush()
        done.append(RuleOfRole(rule.id or 0, rule.name, rule.state))
        if before["state"] != rule.state:
            resumed.append(rule.id or 0)
        lines.append(rules.line_of_change(rule, actor.discord_id, batch, before))
    held = select(func.count()).where(Grant.server_id == server_id, Grant.role_id == order.old, Grant.state == "held")
    members = int((await db.execute(held)).scalar_one())
    if done:
        said = {"roleName": new_name, "oldRoleId": order.old, "oldName": old_name, "rules": len(done)}
        begun = audit.line(
            "rule.role_replaced", server_id=server_id, actor=actor.discord_id, role_id=order.new, batch=batch,
            data={**said, "left": len(left)},
        )  # fmt: skip
        await limits.record(db, [begun, *lines])
    at = str(batch) if done else None
    return RoleReplacement(old_name, new_name, members, tuple(done), tuple(left), True, at), resumed
