"""Bringing rules back: deleted ones, changed ones as they were before, and paused ones."""

from collections.abc import Mapping
from typing import Any, cast

from sqlmodel import col, select

from models import Event, Rule
from models.db.session import AsyncSession
from services.collections import catalog
from services.core import queue
from services.core.actors import Actor
from services.core.errors import Conflict
from services.guilds.permissions import Rights
from services.rules import limits, mapping
from services.rules.draft import RuleDraft
from services.rules.expression import parse, requirements
from services.servers.activity_sentences import changes, members

# How a rule's document names its fields, and how the payload of a change does.
_FIELDS = {
    "name": "ruleName", "roleId": "roleId", "roleColor": "roleColor", "expression": "expression", "removal": "removal",
    "takesOver": "takesOver", "delegated": "delegated", "state": "state",
}  # fmt: skip


async def bring_back(db: AsyncSession, found: Rights, actor: Actor, event: Event) -> str:
    """Make a deleted rule as it was, under its own number. Raises Conflict, FieldRefused."""
    document, rule_id = _document(event, "rule"), event.rule_id or 0
    await limits.lock(db, found.server.id or 0)
    rule = await db.get(Rule, rule_id, with_for_update=True)
    if rule is not None and rule.deleted_at is None:
        raise Conflict("This rule is there again already.")
    await limits.check(db, found.server.id or 0, parse(document["expression"]), rule_id=rule_id)
    if rule is None:
        rule = mapping.new_row(_draft(document, found.server.id or 0), found, actor.discord_id)
        rule.id = rule_id
    rule.deleted_at = None
    mapping.apply(rule, _payload(document), found)
    db.add(rule)
    await _look(db, rule)
    holders = event.data.get("holders") or 0
    back = f" {members(holders)} had {rule.role_name} by it." if isinstance(holders, int) and holders else ""
    return (
        f"The rule “{rule.name}” comes back as it was.{back} Everybody is looked at again, and who holds what it asks "
        f"for has {rule.role_name}."
    )


async def change_back(db: AsyncSession, found: Rights, event: Event) -> str:
    """Put back what a change of a rule changed, and nothing else.

    Raises Conflict when the rule is gone or when one of these fields was changed again since, FieldRefused.
    """
    before, after = _document(event, "before"), _document(event, "after")
    await limits.lock(db, found.server.id or 0)
    rule = await _living(db, event.rule_id or 0)
    now = mapping.document(rule)
    changed = [name for name in _FIELDS if before.get(name) != after.get(name)]
    if not changed:
        raise Conflict("This change changed nothing that could be put back.")
    if any(now.get(name) != after.get(name) for name in changed):
        raise Conflict("The rule was changed again since. Undo the newer change first, or edit the rule.")
    if "expression" in changed:
        await limits.check(db, rule.server_id, parse(before["expression"]), rule_id=rule.id or 0)
    mapping.apply(rule, _payload({name: before.get(name) for name in changed}), found)
    db.add(rule)
    await _look(db, rule)
    places = [(leaf.chain, leaf.contract) for one in (before, after) for leaf in requirements(parse(one["expression"]))]
    told = changes(now, mapping.document(rule), await catalog.names(db, places))
    return f"The rule “{rule.name}” goes back to how it was: {told}. Everybody is looked at again."


async def resume(db: AsyncSession, found: Rights, event: Event) -> str:
    """Let the rules go on that were paused together. Raises Conflict when none of them rests, FieldRefused."""
    rows = await db.exec(
        select(Event.rule_id).where(
            Event.server_id == event.server_id, Event.batch == event.batch, Event.kind == event.kind
        )
    )
    paused = await db.exec(
        select(Rule)
        .where(col(Rule.id).in_(rows.all()), col(Rule.deleted_at).is_(None), Rule.state == "paused")
        .order_by(col(Rule.id))
        .with_for_update()
    )
    names: list[str] = []
    for rule in paused.all():
        mapping.apply(rule, {"state": "active"}, found)
        db.add(rule)
        names.append(f"“{rule.name}”")
        await _look(db, rule)
    if not names:
        raise Conflict("None of these rules is paused any more.")
    return f"{' and '.join(names)} {'goes' if len(names) == 1 else 'go'} on deciding. Everybody is looked at again."


async def _living(db: AsyncSession, rule_id: int) -> Rule:
    rule = await db.get(Rule, rule_id, with_for_update=True)
    if rule is None or rule.deleted_at is not None:
        raise Conflict("The rule was deleted since. Bring it back first.")
    return rule


async def _look(db: AsyncSession, rule: Rule) -> None:
    await db.flush()
    await queue.mark_server(db, rule.server_id, queue.CHANGED)


def _document(event: Event, name: str) -> dict[str, Any]:
    """A rule's document in a line of the log; Conflict if the line has none."""
    value = event.data.get(name)
    if not isinstance(value, dict) or "expression" not in value:
        raise Conflict("The log does not say how the rule was, so it cannot be put back.")
    return cast("dict[str, Any]", value)


def _payload(document: Mapping[str, Any]) -> dict[str, Any]:
    return {theirs: document[ours] for ours, theirs in _FIELDS.items() if document.get(ours) is not None}


def _draft(document: Mapping[str, Any], server_id: int) -> RuleDraft:
    """The document as a draft; the flat fields follow from the expression."""
    first = next(requirements(parse(document["expression"])))
    return RuleDraft(
        rule_name=str(document.get("name")), contract_address=first.contract, blockchain=first.chain,
        verification_type=first.type, role_id=str(document.get("roleId")), server_id=server_id,
        expression=document["expression"],
    )  # fmt: skip
