"""Rules as their admins see them, with their requirements in words and the number of holders."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import String, cast, literal_column
from sqlmodel import col, select

from locales import _
from models import Rule
from models.db.session import AsyncSession
from services.collections import collections
from services.core import rollups
from services.core.json_view import Internal, json_view
from services.guilds.role_safety import UNKNOWN_ROLE, translated
from services.rules.expression import Expression, lists_in, parse_stored, requirements
from services.rules.single_source import SingleSource, single_sources
from services.rules.wording import Line, Names, in_lines, in_words


@json_view
class RemovalPolicy:
    """When a role that no rule gives any more is taken: `now`, or after some hours of `grace`."""

    mode: str
    hours: int


@json_view
class RuleList:
    """A list of addresses that a rule names: how many there are, and the API call with which admins download them."""

    list: str
    count: int
    download: str


@json_view
class RuleView:
    """A stored rule; `holders` counts members with its role from us, `summary` says in words what it asks for.

    `expression` is its document. `singleSources` is empty if a second source can confirm every loss. The flat fields
    repeat the first condition; `blockchain` and `contractAddress` are empty if it names none.
    """

    id: int
    server_id: int
    rule_name: str
    contract_address: str
    blockchain: str
    verification_type: str
    min_tokens: int
    max_tokens: int | None
    role_id: str
    role_name: str
    role_color: str
    trait_type: str | None
    trait_value: str | None
    token_ids: tuple[str, ...]
    expression: Any
    removal: RemovalPolicy
    shadow: bool
    state: str
    pause_reason: str | None
    takes_over: bool
    delegated: bool
    holders: int
    summary: str
    single_sources: tuple[SingleSource, ...]
    address_lists: tuple[RuleList, ...]
    created_at: datetime
    pause_cause: Internal[str | None]
    lines: Internal[tuple[Line, ...]]
    chains: Internal[tuple[str, ...]]
    """The chains of all conditions, in the order of the rule."""


@dataclass(frozen=True, slots=True)
class RuleName:
    """What a stored rule is called, and the role that it gives."""

    id: int
    rule_name: str
    role_id: str
    role_name: str


async def names_of(db: AsyncSession, server_id: int, *, shadow: bool) -> tuple[RuleName, ...]:
    """Return what the rules of a server are called, oldest first; those in shadow only if asked for.

    Discord asks for it at each letter that somebody types, so it reads no conditions: they may be long.
    """
    wanted = [Rule.server_id == server_id, col(Rule.deleted_at).is_(None)]
    if not shadow:
        wanted.append(Rule.state != "shadow")
    found = await db.exec(
        select(Rule.id, Rule.name, Rule.role_id, Rule.role_name).where(*wanted).order_by(col(Rule.id))
    )
    return tuple(
        RuleName(number or 0, name, role_id, role_name or _(UNKNOWN_ROLE)) for number, name, role_id, role_name in found
    )


async def changes_of(db: AsyncSession, server_id: int) -> dict[int, str]:
    """Return for each rule a text that is another one once anything of the rule or its number of holders changes.

    Use it only to decide whether to read the rules again: it checks no permission.
    """
    wanted = [Rule.server_id == server_id, col(Rule.deleted_at).is_(None)]
    # The transaction that wrote the row: it covers every column.
    found = await db.exec(select(Rule.id, cast(literal_column("rule.xmin"), String)).where(*wanted))
    counted = await rollups.holders(db, [server_id])
    return {number: f"{written} {counted.get(number, 0)}" for number, written in found if number}


async def of_servers(db: AsyncSession, server_ids: Iterable[int]) -> dict[int, tuple[RuleView, ...]]:
    """Return the rules of each server, oldest first."""
    ids = list(server_ids)
    found = await db.exec(
        select(Rule).where(col(Rule.server_id).in_(ids), col(Rule.deleted_at).is_(None)).order_by(col(Rule.id))
    )
    views: dict[int, list[RuleView]] = {}
    for view in await _views(db, ids, found.all()):
        views.setdefault(view.server_id, []).append(view)
    return {server_id: tuple(found) for server_id, found in views.items()}


async def of_rules(db: AsyncSession, server_id: int, rule_ids: Iterable[int]) -> tuple[RuleView, ...]:
    """Return those rules of a server that have these ids, oldest first."""
    wanted = [Rule.server_id == server_id, col(Rule.id).in_(list(rule_ids)), col(Rule.deleted_at).is_(None)]
    found = await db.exec(select(Rule).where(*wanted).order_by(col(Rule.id)))
    return await _views(db, [server_id], found.all())


async def of_rule(db: AsyncSession, rule: Rule) -> RuleView:
    """Return the view of one rule."""
    (view,) = await _views(db, [rule.server_id], [rule])
    return view


async def _views(db: AsyncSession, server_ids: Iterable[int], rules: Sequence[Rule]) -> tuple[RuleView, ...]:
    trees = [parse_stored(rule.expression) for rule in rules]
    leaves = [leaf for tree in trees for leaf in requirements(tree)]
    counted = await rollups.holders(db, server_ids)
    names = await collections.names(db, [(leaf.chain, leaf.contract) for leaf in leaves])
    return tuple(
        _view(rule, tree, counted.get(rule.id or 0, 0), names) for rule, tree in zip(rules, trees, strict=True)
    )


def _view(rule: Rule, tree: Expression, held_by: int, names: Names) -> RuleView:
    """Return the view of a row."""
    most = next(requirements(tree)).max_tokens
    return RuleView(
        id=rule.id or 0, server_id=rule.server_id, rule_name=rule.name, contract_address=rule.contract_address,
        blockchain=rule.blockchain, verification_type=rule.verification_type, min_tokens=rule.min_tokens,
        role_id=rule.role_id, role_name=rule.role_name or _(UNKNOWN_ROLE), role_color=rule.role_color,
        trait_type=rule.trait_type, trait_value=rule.trait_value, max_tokens=most, token_ids=tuple(rule.token_ids),
        expression=rule.expression,
        removal=RemovalPolicy(rule.removal_mode, rule.removal_hours), shadow=rule.state == "shadow", state=rule.state,
        pause_reason=rule.pause_reason and translated(rule.pause_reason, rule.role_name),
        takes_over=rule.takes_over, delegated=rule.delegated,
        holders=held_by, summary=in_words(tree, names), single_sources=single_sources(tree),
        address_lists=tuple(
            RuleList(one.list, one.count, f"/api/servers/{rule.server_id}/address-lists/{one.list}")
            for one in dict.fromkeys(lists_in(tree))
        ),
        created_at=rule.created_at, pause_cause=rule.pause_cause, lines=in_lines(tree, names),
        chains=tuple(dict.fromkeys(leaf.chain for leaf in requirements(tree) if leaf.chain)),
    )  # fmt: skip
