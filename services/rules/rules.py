"""Create, list, change, pause and delete rules, for those who run the server."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from gateways import Gateways
from models import Rule, now
from models.db.session import AsyncSession
from services.core import audit, queue, rollups
from services.core.actors import Actor
from services.core.errors import RuleNotFound, ServerNotFound
from services.core.event_kinds import Kind
from services.guilds import permissions
from services.guilds.permissions import Rights
from services.rules import contract_check, limits, pausing, views
from services.rules.draft import RuleDraft, check
from services.rules.expression import Expression, parse, to_document
from services.rules.mapping import apply, copy_of, document, new_row
from services.rules.views import RuleView

__all__ = ["RuleDraft", "RuleView", "change", "create", "create_all", "delete", "get", "list_rules", "own"]


async def create(db: AsyncSession, outside: Gateways, actor: Actor, draft: RuleDraft) -> RuleView:
    """Create a rule and queue the members whom it can concern.

    Raises FieldRefused, ServerNotFound, Conflict (the bot is not in, or a limit is reached), ProviderUnavailable.
    """
    (view,) = await create_all(db, outside, actor, [draft])
    return view


async def create_all(
    db: AsyncSession, outside: Gateways, actor: Actor, drafts: Sequence[RuleDraft]
) -> tuple[RuleView, ...]:
    """Create several rules of one server, such as tiers: all of them or none. Raises as `create` does."""
    for draft in drafts:
        check(draft)  # before any request; the conditions are parsed only for those who run the server
    found = await permissions.by_id(db, outside, actor, drafts[0].server_id)
    made = [new_row(replace(draft, server_id=drafts[0].server_id), found, actor.discord_id) for draft in drafts]
    trees = list[Expression]()
    for rule in made:
        tree = parse(rule.expression)
        tree = contract_check.completed(tree, await contract_check.check(db, outside, tree))
        rule.expression = to_document(tree)
        trees.append(tree)
    server_id = drafts[0].server_id
    await limits.lock(db, server_id)
    for rule, tree in zip(made, trees, strict=True):
        await limits.check(db, server_id, tree)
        db.add(rule)
        await db.flush()
        await audit.record(db, _line("rule.created", rule, actor, {"rule": document(rule)}))
    await queue.mark_server(db, server_id, queue.CHANGED)
    return tuple([await views.of_rule(db, rule) for rule in made])


async def list_rules(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> list[RuleView]:
    """Return a server's rules, oldest first. Raises ServerNotFound unless the actor runs the server."""
    await permissions.to_read(db, outside, actor, server_id)
    return list((await views.of_servers(db, [server_id])).get(server_id, ()))


async def get(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> RuleView:
    """Return one rule. Raises RuleNotFound unless the actor runs its server."""
    rule = await _existing(db, rule_id)
    try:
        await permissions.to_read(db, outside, actor, rule.server_id)
    except ServerNotFound:
        raise RuleNotFound from None
    return await views.of_rule(db, rule)


async def change(
    db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int, changes: Mapping[str, Any]
) -> RuleView:
    """Change fields of a rule (named as in the payload), pause it, resume it or put it in shadow.

    Raises RuleNotFound, FieldRefused, Conflict, ProviderUnavailable (a new contract could not be read).
    """
    rule, found = await own(db, outside, actor, rule_id)
    proposed = copy_of(rule)
    apply(proposed, changes, found)
    decimals: contract_check.Decimals = {}
    if proposed.expression != rule.expression:
        decimals = await contract_check.check(db, outside, parse(proposed.expression))
    await limits.lock(db, rule.server_id)
    rule = await _locked(db, rule_id)
    before = document(rule)
    proposed = copy_of(rule)
    apply(proposed, changes, found)
    if proposed.expression != rule.expression:
        await limits.check(db, rule.server_id, parse(proposed.expression), rule_id=rule_id)
    apply(rule, changes, found)
    rule.expression = to_document(contract_check.completed(parse(rule.expression), decimals))
    db.add(rule)
    await db.flush()
    await audit.record(db, _line("rule.changed", rule, actor, {"before": before, "after": document(rule)}))
    await queue.mark_server(db, rule.server_id, queue.CHANGED)
    return await views.of_rule(db, rule)


async def delete(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> int:
    """Delete a rule; return how many members' roles are first settled by its removal policy."""
    await own(db, outside, actor, rule_id)
    rule = await _locked(db, rule_id)
    holders = (await rollups.holders(db, [rule.server_id])).get(rule_id, 0)
    rule.deleted_at = now()
    db.add(rule)
    await audit.record(db, _line("rule.deleted", rule, actor, {"rule": document(rule), "holders": holders}))
    await queue.mark_server(db, rule.server_id, queue.CHANGED)
    await db.flush()
    await pausing.sweep_deleted(db)
    return holders


async def own(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> tuple[Rule, Rights]:
    """Return a rule's row and the actor's rights in its server. Raises RuleNotFound unless the actor runs it."""
    rule = await _existing(db, rule_id)
    try:
        return rule, await permissions.by_id(db, outside, actor, rule.server_id)
    except ServerNotFound:
        raise RuleNotFound from None


async def _existing(db: AsyncSession, rule_id: int) -> Rule:
    rule = await db.get(Rule, rule_id) if 0 < rule_id < 2**31 else None
    if rule is None or rule.deleted_at is not None:
        raise RuleNotFound
    return rule


async def _locked(db: AsyncSession, rule_id: int) -> Rule:
    """Return the present row, locked until the transaction ends. Raises RuleNotFound if it was deleted meanwhile."""
    rule = await db.get(Rule, rule_id, populate_existing=True, with_for_update=True)
    if rule is None or rule.deleted_at is not None:
        raise RuleNotFound
    return rule


def _line(kind: Kind, rule: Rule, actor: Actor, data: Mapping[str, Any]) -> dict[str, Any]:
    return audit.line(
        kind, server_id=rule.server_id, actor=actor.discord_id, role_id=rule.role_id, rule_id=rule.id, batch=uuid4(),
        data=data,
    )  # fmt: skip
