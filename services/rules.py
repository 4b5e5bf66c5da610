"""Rules: made, listed, changed, paused and deleted by those who run the server just now."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlmodel import col, select

from gateways import Gateways
from models import Rule, now
from models.database import AsyncSession
from services import collections, due, events, rights, rule_states
from services.actors import Actor
from services.errors import FieldRefused, RuleNotFound, ServerNotFound
from services.expressions import Expression, Requirement, parse, requirements, to_document
from services.rights import Rights
from services.role_safety import color_hex, find, refusal
from services.rule_form import (
    ANY_CONTRACT,
    DEFAULT_COLOR,
    SUPPORTED_CHAINS,
    SUPPORTED_TYPES,
    RuleDraft,
    automatic_name,
    check,
    expression_of,
)
from services.rule_words import Names, in_words

__all__ = [
    "SUPPORTED_CHAINS", "SUPPORTED_TYPES", "RuleDraft", "RuleView", "automatic_name", "change", "consequences",
    "create", "delete", "get", "list_rules", "views_of_servers",
]  # fmt: skip

STATES = ("active", "paused", "shadow")


@dataclass(frozen=True, slots=True)
class RuleView:
    """A stored rule as its admins see it; `expression` is JSON text, `holders` counts who has the role by it."""

    id: int
    server_id: int
    rule_name: str
    contract_address: str
    blockchain: str
    verification_type: str
    min_tokens: int
    role_id: str
    role_name: str
    role_color: str
    trait_type: str | None
    trait_value: str | None
    token_ids: tuple[str, ...]
    expression: str
    removal_mode: str
    removal_hours: int
    state: str
    pause_reason: str | None
    holders: int
    summary: str
    created_at: datetime


async def create(db: AsyncSession, outside: Gateways, actor: Actor, draft: RuleDraft) -> RuleView:
    """Make a rule and look at everybody it can concern.

    Raises FieldRefused, ServerNotFound, Conflict (the bot is not in), ProviderUnavailable.
    """
    draft = check(draft)
    tree = expression_of(draft)
    found = await rights.by_id(db, outside, actor, draft.server_id)
    rule = Rule(
        server_id=draft.server_id, name="", role_id="", role_name="", verification_type="", contract_address="",
        blockchain="", created_by=actor.discord_id, state="shadow" if draft.shadow else "active",
    )  # fmt: skip
    _fill(rule, draft, tree, found)
    db.add(rule)
    await db.flush()
    await events.record(db, _line("rule.created", rule, actor, {"rule": _document(rule)}))
    await due.mark_server(db, rule.server_id, due.CHANGED)
    return await _shown(db, rule, 0)


def _fill(rule: Rule, draft: RuleDraft, tree: Expression, found: Rights) -> None:
    """Put a checked draft into the row, with the role as Discord shows it now; FieldRefused if it cannot be granted."""
    guild, person, bot = found.guild_with_bot()
    role = find(guild.roles, draft.role_id)
    if role is None:
        raise FieldRefused("roleId", "This role does not exist in the server (any more). Choose another one.")
    if reason := refusal(role, guild.id, bot, person):
        raise FieldRefused("roleId", reason)
    live = next(item for item in guild.roles if item.id == role.id)
    rule.name = draft.rule_name.strip()
    rule.role_id, rule.role_name = role.id, role.name
    rule.role_color = color_hex(live.color, draft.role_color or DEFAULT_COLOR)
    rule.verification_type, rule.blockchain = draft.verification_type, draft.blockchain
    rule.contract_address = ANY_CONTRACT if draft.verification_type == "any_nft" else draft.contract_address.strip()
    if rule.contract_address[:2].lower() == "0x":
        rule.contract_address = rule.contract_address.lower()
    rule.min_tokens = draft.min_tokens
    rule.trait_type, rule.trait_value, rule.token_ids = draft.trait_type, draft.trait_value, list(draft.token_ids)
    rule.expression = to_document(tree)
    rule.removal_mode, rule.removal_hours = draft.removal_mode, draft.removal_hours
    rule.updated_at = now()


async def list_rules(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> list[RuleView]:
    """The rules of a server, oldest first, for those who run it; ServerNotFound for anyone else."""
    await rights.by_id(db, outside, actor, server_id)
    return list((await views_of_servers(db, [server_id])).get(server_id, ()))


async def views_of_servers(db: AsyncSession, server_ids: Iterable[int]) -> dict[int, tuple[RuleView, ...]]:
    """Per server its rules, oldest first, with how many members have a role by each."""
    ids = list(server_ids)
    found = await db.exec(
        select(Rule).where(col(Rule.server_id).in_(ids), col(Rule.deleted_at).is_(None)).order_by(col(Rule.id))
    )
    rules = found.all()
    holders, names = await _holders(db, ids), await _names(db, rules)
    views: dict[int, list[RuleView]] = {}
    for rule in rules:
        views.setdefault(rule.server_id, []).append(_view(rule, holders.get(rule.id or 0, 0), names))
    return {server_id: tuple(found) for server_id, found in views.items()}


async def get(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> RuleView:
    """One rule, for those who run its server; RuleNotFound for anyone else."""
    rule, _ = await _own(db, outside, actor, rule_id)
    return await _shown(db, rule, await consequences(db, outside, actor, rule_id))


async def consequences(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> int:
    """How many members have a role by this rule: those whom deleting it concerns."""
    rule, _ = await _own(db, outside, actor, rule_id)
    return (await _holders(db, [rule.server_id])).get(rule_id, 0)


async def change(
    db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int, changes: Mapping[str, Any]
) -> RuleView:
    """Change fields of a rule (named as in the payload), pause it, resume it or put it in shadow.

    Raises RuleNotFound, FieldRefused, Conflict, ProviderUnavailable.
    """
    rule, found = await _own(db, outside, actor, rule_id)
    before = _document(rule)
    state = changes.get("state", rule.state)
    if state not in STATES:
        raise FieldRefused("state", f"A rule's state is one of {', '.join(STATES)}.")
    fields = {name: value for name, value in changes.items() if name != "state"}
    if fields or (state != "paused" and state != rule.state):
        draft = check(_changed(_draft(rule), fields))
        _fill(rule, draft, expression_of(draft), found)
    if state != rule.state:
        rule.pause_reason = "Paused by an admin" if state == "paused" else None
    rule.state, rule.updated_at = state, now()
    db.add(rule)
    await db.flush()
    await events.record(db, _line("rule.changed", rule, actor, {"before": before, "after": _document(rule)}))
    await due.mark_server(db, rule.server_id, due.CHANGED)
    return await _shown(db, rule, (await _holders(db, [rule.server_id])).get(rule_id, 0))


async def delete(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> int:
    """Delete a rule; tells how many members' roles are settled first, each by the rule's removal policy."""
    rule, _ = await _own(db, outside, actor, rule_id)
    holders = (await _holders(db, [rule.server_id])).get(rule_id, 0)
    rule.deleted_at = now()
    db.add(rule)
    await events.record(db, _line("rule.deleted", rule, actor, {"rule": _document(rule), "holders": holders}))
    await due.mark_server(db, rule.server_id, due.CHANGED)
    await db.flush()
    await rule_states.sweep_deleted(db)
    return holders


async def _own(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> tuple[Rule, Rights]:
    rule = await db.get(Rule, rule_id) if 0 < rule_id < 2**31 else None
    if rule is None or rule.deleted_at is not None:
        raise RuleNotFound
    try:
        return rule, await rights.by_id(db, outside, actor, rule.server_id)
    except ServerNotFound:
        raise RuleNotFound from None


async def _holders(db: AsyncSession, server_ids: Iterable[int]) -> dict[int, int]:
    result = await db.execute(
        text(
            'SELECT rule_id, count(*) FROM "grant", unnest(rule_ids) AS rule_id '
            "WHERE server_id = ANY(CAST(:ids AS integer[])) AND state IN ('held', 'taking') GROUP BY rule_id"
        ),
        {"ids": list(server_ids)},
    )
    return {int(rule_id): int(count) for rule_id, count in result.all()}


def _draft(rule: Rule) -> RuleDraft:
    flat = parse(rule.expression)
    simple = isinstance(flat, Requirement)
    return RuleDraft(
        rule_name=rule.name, contract_address=rule.contract_address, blockchain=rule.blockchain,
        verification_type=rule.verification_type, role_id=rule.role_id, server_id=rule.server_id,
        min_tokens=rule.min_tokens, role_color=rule.role_color, trait_type=rule.trait_type,
        trait_value=rule.trait_value, token_ids=tuple(rule.token_ids),
        expression=None if simple else rule.expression, removal_mode=rule.removal_mode,
        removal_hours=rule.removal_hours,
    )  # fmt: skip


_FIELDS = {
    "ruleName": "rule_name", "contractAddress": "contract_address", "blockchain": "blockchain",
    "verificationType": "verification_type", "roleId": "role_id", "minTokens": "min_tokens",
    "roleColor": "role_color", "traitType": "trait_type", "traitValue": "trait_value", "tokenIds": "token_ids",
    "expression": "expression",
}  # fmt: skip


def _changed(draft: RuleDraft, fields: Mapping[str, Any]) -> RuleDraft:
    values = {ours: fields[theirs] for theirs, ours in _FIELDS.items() if theirs in fields}
    if "token_ids" in values:
        values["token_ids"] = tuple(values["token_ids"])
    if "expression" not in values and values.keys() & {"contract_address", "blockchain", "min_tokens"}:
        values["expression"] = None
    removal = fields.get("removal")
    if isinstance(removal, Mapping):
        values["removal_mode"] = removal.get("mode", draft.removal_mode)  # pyright: ignore[reportUnknownMemberType]
        values["removal_hours"] = removal.get("hours", 0) or 0  # pyright: ignore[reportUnknownMemberType]
    return replace(draft, **values)


async def _names(db: AsyncSession, rules: Iterable[Rule]) -> Names:
    leaves = [leaf for rule in rules for leaf in requirements(parse(rule.expression))]
    return await collections.names(db, [(leaf.chain, leaf.contract) for leaf in leaves])


async def _shown(db: AsyncSession, rule: Rule, holders: int) -> RuleView:
    return _view(rule, holders, await _names(db, [rule]))


def _view(rule: Rule, holders: int, names: Names) -> RuleView:
    return RuleView(
        id=rule.id or 0, server_id=rule.server_id, rule_name=rule.name, contract_address=rule.contract_address,
        blockchain=rule.blockchain, verification_type=rule.verification_type, min_tokens=rule.min_tokens,
        role_id=rule.role_id, role_name=rule.role_name, role_color=rule.role_color, trait_type=rule.trait_type,
        trait_value=rule.trait_value, token_ids=tuple(rule.token_ids), expression=json.dumps(rule.expression),
        removal_mode=rule.removal_mode, removal_hours=rule.removal_hours, state=rule.state,
        pause_reason=rule.pause_reason, holders=holders, summary=in_words(parse(rule.expression), names),
        created_at=rule.created_at,
    )  # fmt: skip


def _document(rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name, "roleId": rule.role_id, "roleName": rule.role_name, "expression": rule.expression,
        "removal": {"mode": rule.removal_mode, "hours": rule.removal_hours}, "state": rule.state,
    }  # fmt: skip


def _line(kind: str, rule: Rule, actor: Actor, data: Mapping[str, Any]) -> dict[str, Any]:
    return events.line(
        kind, server_id=rule.server_id, actor=actor.discord_id, role_id=rule.role_id, rule_id=rule.id, data=data
    )
