"""Migration of a collection or a coin to another contract, in all rules of a server at once.

Both contracts can count for a time. A rule that cannot be carried over is named and stays unchanged.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import UUID, uuid4

from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from gateways import Gateways
from locales import _
from models import ContractMigration, Rule
from models.db import row_ids
from models.db.session import AsyncSession
from services.collections import collections
from services.core import audit
from services.core.actors import Actor
from services.core.chain_names import chain_title
from services.core.errors import Conflict, FieldRefused, Forbidden, MigrationNotFound
from services.core.json_view import json_view
from services.guilds import permissions
from services.guilds.permissions import Rights
from services.guilds.role_safety import find, refusal
from services.rules import limits, pausing, rules
from services.rules.expression import (
    Expression,
    ExpressionRefused,
    Requirement,
    parse,
    parse_stored,
    requirements,
    to_document,
)
from services.rules.replacements import condition_successors, new_contract
from services.rules.replacements.condition_successors import MigrationOrder, Successors
from services.rules.replacements.new_contract import NotCarried
from services.rules.rule_rows import copy_of, document, set_expression, taking_refused
from services.rules.wording import Line, Names, in_lines, in_words

LONGEST = timedelta(days=366)
ENDED_AT_ONCE = 20
"""Maximum number of migrations that one call of `end_due` ends."""


@json_view
class MigratedRule:
    """A rule that is carried over: what it asks for `before` and `after`, in words, and notes about it."""

    id: int
    name: str
    role_id: str
    role_name: str
    role_color: str
    state: str
    before: str
    after: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


@json_view
class LeftRule:
    """A rule that names the old contract and stays unchanged, and why."""

    id: int
    name: str
    why: str


@json_view
class MigrationView:
    """What a migration does, or did, to a server's rules; `batch` undoes it, `id` is set if both contracts count."""

    rules: tuple[MigratedRule, ...]
    left: tuple[LeftRule, ...]
    applied: bool
    batch: str | None = None
    id: int | None = None


async def preview(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: MigrationOrder
) -> MigrationView:
    """Return what a migration would do to the rules, without changing any.

    Raises ServerNotFound unless the actor runs the server, FieldRefused, Conflict (the bot is not in, or a limit is
    reached), ProviderUnavailable (a contract could not be read).
    """
    found, order, known = await _read(db, outside, actor, server_id, order)
    nothing = await db.begin_nested()
    try:
        return replace(await _write(db, found, actor, order, known), applied=False, batch=None, id=None)
    finally:
        await nothing.rollback()


async def apply(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: MigrationOrder
) -> MigrationView:
    """Carry over all rules that can be, in one transaction. Raises as `preview` does, and Conflict if none can be."""
    found, order, known = await _read(db, outside, actor, server_id, order)
    done = await _write(db, found, actor, order, known)
    if not done.rules:
        told = _("None of the rules that name this contract can be carried over: {reason}")
        raise Conflict(told.format(reason=done.left[0].why if done.left else ""))
    await pausing.decide_again(db, server_id)
    return done


async def proposed(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: MigrationOrder
) -> list[tuple[Rule, Rule]]:
    """Return the rules that a migration changes, each before and after. Raises as `preview` does."""
    found, order, known = await _read(db, outside, actor, server_id, order)
    pairs = list[tuple[Rule, Rule]]()
    for rule in await _concerned(db, server_id, order):
        tree = _carried(rule, found, order, known)
        if not isinstance(tree, str):
            pairs.append(_pair(rule, tree))
    return pairs


async def proposed_end(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, migration_id: int
) -> list[tuple[Rule, Rule]]:
    """Return the rules that the end of a migration changes, each before and after. Raises as `end` does."""
    found = await permissions.require_admin(db, outside, actor, server_id)
    migration = await _open(db, server_id, migration_id)
    ending = await _ending(db, found, migration)
    return [_pair(rule, parse(migration.rules[str(rule.id)]["only"])) for rule in ending]


async def end(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, migration_id: int) -> MigrationView:
    """Let only the new contract count from now on.

    Raises ServerNotFound, MigrationNotFound, Forbidden for a role that is not below the actor's own highest role,
    ProviderUnavailable.
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    await limits.lock(db, server_id)
    migration = await _open(db, server_id, migration_id, lock=True)
    await _ending(db, found, migration)
    view = await _end(db, actor.discord_id, migration)
    await pausing.decide_again(db, server_id)
    return view


def _of_migration(migration: ContractMigration) -> SelectOfScalar[Rule]:
    """Return the query for the rules of a migration that still exist, oldest first."""
    ids = [int(one) for one in migration.rules]
    return select(Rule).where(col(Rule.id).in_(ids), col(Rule.deleted_at).is_(None)).order_by(col(Rule.id))


async def _ending(db: AsyncSession, found: Rights, migration: ContractMigration) -> list[Rule]:
    """Return the rules that the end of a migration changes.

    Raises Forbidden if members may lose a role of theirs that the person may not take from members.
    """
    rows = await db.exec(_of_migration(migration))
    ending = [rule for rule in rows.all() if migration.rules[str(rule.id)]["both"] == rule.expression]
    for rule in ending:
        if reason := taking_refused(found, rule.role_id):
            raise Forbidden(reason)
    return ending


async def end_due(db: AsyncSession) -> int:
    """End the migrations of one server whose date has come, at most ENDED_AT_ONCE; return how many.

    A migration of rules that only a newer version can read stays open for that version, and the others go on. Only
    one server, because its members are queued at the end. A wait for the rules of another server after that could be a
    wait for somebody who changes them, and who waits for a reconcile of members of both.
    """
    rows = await db.exec(
        select(ContractMigration.server_id, ContractMigration.id)
        .where(ContractMigration.state == "open", col(ContractMigration.until) <= await db.now())
        .order_by(col(ContractMigration.server_id), col(ContractMigration.id))
    )
    ended, of_server = 0, 0
    for server_id, migration_id in rows.all():
        if ended == ENDED_AT_ONCE or (ended and server_id != of_server):
            break
        of_server = server_id
        await limits.lock(db, server_id)
        row = await db.get(ContractMigration, migration_id, populate_existing=True, with_for_update=True)
        if row is not None and row.state == "open" and row.until is not None and row.until <= await db.now():
            with suppress(ExpressionRefused):
                async with db.begin_nested():
                    await _end(db, None, row)
                    ended += 1
    if ended:
        await pausing.decide_again(db, of_server)
    return ended


async def put_back(
    db: AsyncSession, found: Rights, batch: UUID, changed: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """Restore the former expressions of a batch's rules; return the names of these rules, and those of the others.

    `changed` are the documents of the log's lines: `rule` (its id), `before` and `after`. A rule stays unchanged if it
    was changed since, was deleted, or gives a role that the actor cannot give. Raises Conflict if a limit is reached.
    """
    server_id = found.server.id or 0
    await limits.lock(db, server_id)
    back, left = list[str](), list[str]()
    for line in changed:
        before, after = line["before"], line["after"]
        rule = await db.get(Rule, line["rule"], populate_existing=True, with_for_update=True)
        same = rule is not None and rule.deleted_at is None and rule.expression == after["expression"]
        if rule is None or not same or _ungrantable(rule, found):
            left.append(str(after["name"]))
            continue
        tree = parse(before["expression"])
        await limits.check(db, server_id, tree, rule_id=rule.id or 0)
        set_expression(rule, tree)
        db.add(rule)
        await db.flush()
        back.append(rule.name)
    if not back:
        raise Conflict(_("The rules were changed again since. Undo the newer changes first, or edit the rules."))
    await db.flush()
    await _reopen(db, server_id, batch)
    await pausing.decide_again(db, server_id)
    return back, left


async def _reopen(db: AsyncSession, server_id: int, batch: UUID) -> None:
    """Mark the migration that began with the batch as undone; reopen one that ended with it, without a date."""
    rows = await db.exec(select(ContractMigration).where(ContractMigration.server_id == server_id).with_for_update())
    for migration in rows.all():
        if migration.batch == batch:
            migration.state, migration.ended_at = "undone", await db.now()
        elif migration.state == "ended" and migration.rules.get(_ENDED_BY) == str(batch):
            kept = {key: value for key, value in migration.rules.items() if key != _ENDED_BY}
            migration.state, migration.ended_at, migration.until, migration.rules = "open", None, None, kept
        else:
            continue
        db.add(migration)
    await db.flush()


_ENDED_BY = "ended"


async def _read(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: MigrationOrder
) -> tuple[Rights, MigrationOrder, Successors]:
    """Return the actor's rights, the order with its addresses normalised, and the conditions' successors."""
    found = await permissions.require_admin(db, outside, actor, server_id)
    found.guild_with_bot()
    order = condition_successors.checked(order)
    if order.until is not None and order.both:
        at = await db.now()
        if order.until <= at:
            raise FieldRefused("until", _("The date until which both count is in the future."))
        if order.until > at + LONGEST:
            raise FieldRefused("until", _("Both count for at most a year."))
    concerned = await _concerned(db, server_id, order)
    if not concerned:
        where = chain_title(order.chain)
        raise FieldRefused("contract", _("No rule of this server names this contract on {chain}.").format(chain=where))
    leaves = [leaf for rule in concerned for leaf in new_contract.naming(parse(rule.expression), order.old)]
    return found, order, await condition_successors.read(db, outside, dict.fromkeys(leaves), order)


async def _concerned(db: AsyncSession, server_id: int, order: MigrationOrder, *, lock: bool = False) -> list[Rule]:
    """Return the server's rules that name the old contract, oldest first."""
    wanted = (
        select(Rule)
        .where(Rule.server_id == server_id, col(Rule.deleted_at).is_(None))
        .order_by(col(Rule.id))
        .execution_options(populate_existing=True)
    )
    rows = await db.exec(wanted.with_for_update() if lock else wanted)
    return [
        rule
        for rule in rows.all()
        if new_contract.naming(tree := parse_stored(rule.expression), order.old)
        or new_contract.passes_on(tree, order.old)
    ]


def _carried(rule: Rule, found: Rights, order: MigrationOrder, known: Successors) -> Expression | str:
    """Return the rule's new expression, or why it stays unchanged."""
    if reason := _ungrantable(rule, found):
        return reason
    tree = parse(rule.expression)
    if new_contract.passes_on(tree, order.old):
        return _("A function of another contract gets the old address as an argument. Change that condition by hand.")
    if any(leaf.kind.source == "nothing" for leaf in requirements(tree)):
        return _("It has a condition of a type that is not available here.")
    leaves = new_contract.naming(tree, order.old)
    replaced = dict[Requirement, Requirement]()
    for leaf in leaves:
        new = known.get(leaf) or _("The rule was changed just now. Look again.")
        if isinstance(new, str):
            return new
        replaced[leaf] = new
    try:
        return new_contract.carried(tree, replaced, both=order.both)
    except NotCarried as fault:
        return str(fault)


def _ungrantable(rule: Rule, found: Rights) -> str | None:
    """Return why this person may not change a rule for this role, or None."""
    guild, person, bot = found.guild_with_bot()
    role = find(guild.roles, rule.role_id)
    if role is None:
        return _("Its role does not exist in the server any more.")
    return refusal(role, guild.id, bot, person)


async def _write(
    db: AsyncSession, found: Rights, actor: Actor, order: MigrationOrder, known: Successors
) -> MigrationView:
    server_id, batch = found.server.id or 0, uuid4()
    await limits.lock(db, server_id)
    concerned = await _concerned(db, server_id, order, lock=True)
    trees = {rule.id: _carried(rule, found, order, known) for rule in concerned}
    names = await collections.names(db, _places([parse(rule.expression) for rule in concerned], trees.values()))
    done, left, lines = list[MigratedRule](), list[LeftRule](), list[dict[str, Any]]()
    both = dict[str, Any]()
    for rule in concerned:
        tree = trees[rule.id]
        if isinstance(tree, str):
            left.append(LeftRule(rule.id or 0, rule.name, tree))
            continue
        before, former = document(rule), parse(rule.expression)
        await limits.check(db, server_id, tree, rule_id=rule.id or 0)
        set_expression(rule, tree)
        db.add(rule)
        await db.flush()
        replaced = {leaf: cast("Requirement", known[leaf]) for leaf in new_contract.naming(former, order.old)}
        only = new_contract.carried(former, replaced, both=False)
        both[str(rule.id)] = {"both": to_document(tree), "only": to_document(only)}
        done.append(_view(rule, former, tree, names, new_contract.notes(replaced) if order.both else ()))
        lines.append(rules.line_of_change(rule, actor.discord_id, batch, before))
    if not done:
        return MigrationView((), tuple(left), applied=True)
    migration = None
    if order.both:
        migration = ContractMigration(
            server_id=server_id, chain=order.chain, contract=order.contract, new_chain=order.new_chain,
            new_contract=order.new_contract, until=order.until, rules=both, batch=batch,
        )  # fmt: skip
        db.add(migration)
        await db.flush()
    said = {
        **_said(order.old, order.new, names), "both": order.both,
        "until": order.until.isoformat() if order.until else None, "rules": len(done), "left": len(left),
    }  # fmt: skip
    begun = audit.line("rule.migrated", server_id=server_id, actor=actor.discord_id, batch=batch, data=said)
    await limits.record(db, [begun, *lines])
    return MigrationView(tuple(done), tuple(left), True, str(batch), migration.id if migration else None)


async def _end(db: AsyncSession, actor: str | None, migration: ContractMigration) -> MigrationView:
    """End a migration and record it; `pausing.decide_again` has to follow."""
    batch = uuid4()
    rows = await db.exec(_of_migration(migration).execution_options(populate_existing=True).with_for_update())
    done, left, lines = list[MigratedRule](), list[LeftRule](), list[dict[str, Any]]()
    names = await collections.names(
        db, [(migration.chain, migration.contract), (migration.new_chain, migration.new_contract)]
    )
    for rule in rows.all():
        kept = migration.rules[str(rule.id)]
        if rule.expression != kept["both"]:
            left.append(LeftRule(rule.id or 0, rule.name, _("It was changed since, so it stays as it is.")))
            continue
        before, former, tree = document(rule), parse(rule.expression), parse(kept["only"])
        set_expression(rule, tree)
        db.add(rule)
        await db.flush()
        done.append(_view(rule, former, tree, names, ()))
        lines.append(rules.line_of_change(rule, actor, batch, before))
    migration.state, migration.ended_at = "ended", await db.now()
    migration.rules = {**migration.rules, _ENDED_BY: str(batch)}
    db.add(migration)
    old, new = (migration.chain, migration.contract), (migration.new_chain, migration.new_contract)
    said = {**_said(old, new, names), "rules": len(done), "left": len(left)}
    ended = audit.line("rule.migration_ended", server_id=migration.server_id, actor=actor, batch=batch, data=said)
    await db.flush()
    await limits.record(db, [ended, *lines])
    return MigrationView(tuple(done), tuple(left), True, str(batch) if done else None, migration.id)


def _said(old: tuple[str, str], new: tuple[str, str], names: Names) -> dict[str, Any]:
    """Return the two contracts as a line of the log stores them."""
    return {
        key: {"chain": place[0], "contract": place[1], "name": names.get(place) or ""}
        for key, place in (("old", old), ("new", new))
    }


async def _open(db: AsyncSession, server_id: int, migration_id: int, *, lock: bool = False) -> ContractMigration:
    found = None
    if row_ids.fits(migration_id):
        found = await db.get(ContractMigration, migration_id, populate_existing=True, with_for_update=lock)
    if found is None or found.server_id != server_id or found.state != "open":
        raise MigrationNotFound
    return found


def _pair(rule: Rule, tree: Expression) -> tuple[Rule, Rule]:
    after = copy_of(rule)
    set_expression(after, tree)
    return rule, after


def _places(before: Sequence[Expression], after: Iterable[Expression | str]) -> list[tuple[str, str]]:
    trees = [*before, *(tree for tree in after if not isinstance(tree, str))]
    return [(leaf.chain, leaf.contract) for tree in trees for leaf in requirements(tree)]


def _view(rule: Rule, before: Expression, after: Expression, names: Names, notes: tuple[str, ...]) -> MigratedRule:
    return MigratedRule(
        rule.id or 0, rule.name, rule.role_id, rule.role_name, rule.role_color, rule.state,
        in_words(before, names), in_words(after, names), in_lines(after, names), notes,
    )  # fmt: skip
