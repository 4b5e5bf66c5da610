"""Create, list, change, pause and delete rules, for those who run the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, cast
from uuid import UUID, uuid4

from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from gateways import Gateways
from locales import _
from models import Rule, RuleRequest, now
from models.db import row_ids
from models.db.session import AsyncSession
from services.core import audit, queue, rollups
from services.core.actors import Actor
from services.core.errors import Conflict, Forbidden, KeyReused, RuleNotFound, ServerNotFound
from services.core.event_kinds import Kind
from services.guilds import permissions
from services.guilds.permissions import Rights
from services.rules import contract_check, limits, pausing, views
from services.rules.draft import RuleDraft, check, with_lists, without_lists
from services.rules.expression import Expression, lists_in, parse, parse_stored, to_document
from services.rules.rule_rows import apply, copy_of, document, new_row, taking_refused
from services.rules.types import stored_address_lists, submitted_address_lists
from services.rules.types.address_list import AddressList
from services.rules.types.address_list_text import ReadList
from services.rules.types.submitted_address_lists import GivenLists
from services.rules.views import RuleView


@dataclass(frozen=True, slots=True)
class Request:
    """A request that may be repeated: its `Idempotency-Key`, and a SHA-256 of what it sent."""

    key: str
    body: bytes

    def key_of(self, actor: Actor) -> bytes:
        """Return the key under which the actor's request is stored; nobody else's has the same one."""
        return sha256(f"{actor.user_id} {self.key}".encode()).digest()


async def create(
    db: AsyncSession, outside: Gateways, actor: Actor, draft: RuleDraft, request: Request | None = None
) -> RuleView:
    """Create a rule and queue the members whom it can concern, or return the one that this request has created.

    Raises FieldRefused, ServerNotFound, Conflict (the bot is not in, or a limit is reached), ProviderUnavailable,
    KeyReused, and RuleNotFound if the request has created a rule that was deleted.
    """
    (view,) = await create_all(db, outside, actor, [draft], request)
    return view


async def create_all(
    db: AsyncSession, outside: Gateways, actor: Actor, drafts: Sequence[RuleDraft], request: Request | None = None
) -> tuple[RuleView, ...]:
    """Create several rules of one server, such as tiers: all of them or none. Raises as `create` does.

    Only a single rule can have a `request`.
    """
    server_id, lists = drafts[0].server_id, GivenLists()
    bare = [replace(without_lists(draft, lists), server_id=server_id) for draft in drafts]
    for draft in bare:
        check(draft)  # before any request; conditions and lists are read only for those who run the server
    found = await permissions.require_admin(db, outside, actor, server_id)
    if request is not None and (earlier := await _made_by(db, actor, server_id, request)):
        return (earlier,)
    read = await lists.read()
    made = [new_row(with_lists(draft, lists), found, actor.discord_id) for draft in bare]
    trees = list[Expression]()
    for rule in made:
        tree = parse(rule.expression)
        tree = contract_check.completed(tree, await contract_check.check(db, outside, tree))
        rule.expression = to_document(tree)
        trees.append(tree)
    await limits.lock(db, server_id)
    if request is not None and (earlier := await _made_by(db, actor, server_id, request)):
        return (earlier,)  # made while this request waited
    await stored_address_lists.keep(db, server_id, read.values())
    lines = list[dict[str, Any]]()
    for rule, tree in zip(made, trees, strict=True):
        await limits.check(db, server_id, tree)
        await stored_address_lists.use(db, server_id, lists_in(tree))
        db.add(rule)
        await db.flush()
        lines.append(_line("rule.created", rule, actor.discord_id, uuid4(), {"rule": document(rule)}))
    await limits.record(db, lines)
    if request is not None:
        (rule,) = made
        key = request.key_of(actor)
        db.add(RuleRequest(server_id=server_id, key=key, body=request.body, rule_id=rule.id or 0))
    await pausing.decide_again(db, server_id, {rule.role_id for rule in made})
    return tuple([await views.of_rule(db, rule) for rule in made])


async def _made_by(db: AsyncSession, actor: Actor, server_id: int, request: Request) -> RuleView | None:
    """Return the rule that this request has created, as it is now. Raises KeyReused, RuleNotFound."""
    known = await db.get(RuleRequest, (server_id, request.key_of(actor)))
    if known is None:
        return None
    if known.body != request.body:
        raise KeyReused
    return await views.of_rule(db, await _existing(db, known.rule_id))


async def proposed_together(
    db: AsyncSession, outside: Gateways, actor: Actor, drafts: Sequence[RuleDraft]
) -> tuple[list[tuple[Rule, Rule]], Mapping[str, ReadList]]:
    """Return the rules that `create_all` would create, active and each twice, and their lists, for a preview.

    Their ids are negative, so that their answers stay apart. Raises as `create_all` does, except that a contract that
    cannot be read just now is no reason.
    """
    lists = GivenLists()
    bare = [without_lists(draft, lists) for draft in drafts]
    for draft in bare:
        check(draft)
    found = await permissions.require_admin(db, outside, actor, drafts[0].server_id)
    read = await lists.read()
    made = list[tuple[Rule, Rule]]()
    for number, draft in enumerate(bare, 1):
        rule = new_row(with_lists(draft, lists), found, actor.discord_id)
        await limits.check(db, rule.server_id, parse(rule.expression))
        await contract_check.complete_for_preview(db, outside, rule)
        rule.id, rule.state = -number, "active"
        made.append((rule, rule))
    return made, read


async def list_rules(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> list[RuleView]:
    """Return a server's rules, oldest first. Raises ServerNotFound unless the actor runs the server."""
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    return list((await views.of_servers(db, [server_id])).get(server_id, ()))


async def get(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> RuleView:
    """Return one rule. Raises RuleNotFound unless the actor runs its server."""
    rule = await _existing(db, rule_id)
    try:
        await permissions.require_admin_to_read(db, outside, actor, rule.server_id)
    except ServerNotFound:
        raise RuleNotFound from None
    return await views.of_rule(db, rule)


async def change(
    db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int, changes: Mapping[str, Any]
) -> RuleView:
    """Change fields of a rule (named as in the payload), pause it, resume it or put it in shadow.

    A value that the rule already has changes nothing, is not logged and queues nobody. Raises RuleNotFound,
    FieldRefused, Conflict (also if somebody changed its conditions meanwhile), ProviderUnavailable (a new contract
    could not be read).
    """
    rule, found = await own(db, outside, actor, rule_id)
    changes, read = await submitted_address_lists.read_out(changes)
    proposed = copy_of(rule)
    apply(proposed, changes, found)
    decimals: contract_check.Decimals = {}
    checked = proposed.expression
    if checked != rule.expression:
        decimals = await contract_check.check(db, outside, parse(checked))
    await limits.lock(db, rule.server_id)
    rule = await _locked(db, rule_id)
    before = document(rule)
    proposed = copy_of(rule)
    apply(proposed, changes, found)
    if proposed.expression != rule.expression:
        if proposed.expression != checked:
            # Together with what somebody else has changed, it names contracts that were not read.
            raise Conflict(_("The rule was changed just now. Look again."))
        tree = parse(proposed.expression)
        await limits.check(db, rule.server_id, tree, rule_id=rule_id)
        proposed.expression = to_document(contract_check.completed(tree, decimals))
    await stored_address_lists.keep(db, rule.server_id, read.values())
    await stored_address_lists.use(db, rule.server_id, lists_in(parse_stored(proposed.expression)))
    if (document(proposed), _pause(proposed)) == (before, _pause(rule)):
        return await views.of_rule(db, rule)
    apply(rule, changes, found)
    rule.expression = proposed.expression
    db.add(rule)
    await db.flush()
    await limits.record(db, [line_of_change(rule, actor.discord_id, uuid4(), before)])
    await mark_changed(db, rule, before)
    return await views.of_rule(db, rule)


def _pause(rule: Rule) -> tuple[str | None, str | None]:
    """Return the cause and the reason of a rule's pause, which its document does not contain."""
    return rule.pause_cause, rule.pause_reason


async def activate_all(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, rule_ids: Sequence[int]
) -> int:
    """Activate rules of a server that are in shadow: all of them or none; return how many.

    A rule that is not in shadow any more, or was deleted, stays unchanged. Raises ServerNotFound, FieldRefused (a role
    that cannot be granted), Conflict.
    """
    found = await permissions.require_admin(db, outside, actor, server_id)
    await limits.lock(db, server_id)
    rows = await db.exec(in_shadow(server_id, rule_ids).with_for_update())
    activated, lines = rows.all(), list[dict[str, Any]]()
    for rule in activated:
        before = document(rule)
        apply(rule, {"state": "active"}, found)
        await stored_address_lists.use(db, server_id, lists_in(parse(rule.expression)))
        db.add(rule)
        await db.flush()
        lines.append(line_of_change(rule, actor.discord_id, uuid4(), before))
    await limits.record(db, lines)
    if activated:
        roles, resumed = {rule.role_id for rule in activated}, [rule.id or 0 for rule in activated]
        await pausing.decide_again(db, server_id, roles, resumed=resumed)
    return len(activated)


def in_shadow(server_id: int, rule_ids: Sequence[int]) -> SelectOfScalar[Rule]:
    """Return the query for a server's rules with these ids that are in shadow, oldest first."""
    few = [one for one in rule_ids if row_ids.fits(one)]
    return (
        select(Rule)
        .where(Rule.server_id == server_id, col(Rule.id).in_(few))
        .where(Rule.state == "shadow", col(Rule.deleted_at).is_(None))
        .order_by(col(Rule.id))
    )


async def mark_changed(db: AsyncSession, rule: Rule, before: Mapping[str, Any]) -> None:
    """Queue the members whom a changed rule can concern, and cancel their removals.

    If only a list of addresses was replaced, this concerns only members with a wallet on just one of the two lists.
    Deletes the lists that no rule uses any more. `before` is the former document.
    """
    former = {one.list: one for one in lists_in(parse_stored(before["expression"]))}
    present = {one.list: one for one in lists_in(parse_stored(rule.expression))}
    gone, new = former.keys() - present.keys(), present.keys() - former.keys()
    roles = {before["roleId"], rule.role_id}
    if len(gone) == len(new) == 1 and _renamed(before, former[min(gone)], present[min(new)]) == document(rule):
        await stored_address_lists.mark_differing(db, rule.server_id, min(gone), min(new), queue.CHANGED)
        await pausing.call_off_removals(db, rule.server_id, roles, of_queued=True)
    else:
        resumed = [rule.id or 0] if before["state"] != rule.state == "active" else []
        await pausing.decide_again(db, rule.server_id, roles, resumed=resumed)
    await stored_address_lists.drop(db, rule.server_id, gone)


def _renamed(document: Any, former: AddressList, present: AddressList) -> Any:
    """Return a document with the list `former` replaced by `present`."""
    if isinstance(document, list):
        return [_renamed(one, former, present) for one in cast("list[Any]", document)]
    if not isinstance(document, Mapping):
        return document
    node = {name: _renamed(one, former, present) for name, one in cast("Mapping[str, Any]", document).items()}
    return node | present.document() if node.get("list") == former.list else node


async def delete(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> int:
    """Delete a rule; return how many members hold its role, which its removal policy must settle first.

    Raises RuleNotFound, Forbidden for a role that is not below the actor's own highest role.
    """
    rule, found = await own(db, outside, actor, rule_id)
    await limits.lock(db, rule.server_id)
    rule = await _locked(db, rule_id)
    if reason := taking_refused(found, rule.role_id):
        raise Forbidden(reason)
    holders = (await rollups.holders(db, [rule.server_id])).get(rule_id, 0)
    rule.deleted_at = now()
    db.add(rule)
    data = {"rule": document(rule), "holders": holders, "pauseCause": rule.pause_cause}
    await limits.record(db, [_line("rule.deleted", rule, actor.discord_id, uuid4(), data)])
    await queue.mark_server(db, rule.server_id, queue.CHANGED)
    await db.flush()
    if rule.state != "active":
        # Until now it let its roles stay without checking holdings.
        await pausing.begin_grace_again(db, rule.server_id, [rule_id])
    await stored_address_lists.drop(db, rule.server_id, {one.list for one in lists_in(parse_stored(rule.expression))})
    await pausing.sweep_deleted(db, [rule_id])
    return holders


async def own(db: AsyncSession, outside: Gateways, actor: Actor, rule_id: int) -> tuple[Rule, Rights]:
    """Return a rule's row and the actor's rights in its server. Raises RuleNotFound unless the actor runs it."""
    rule = await _existing(db, rule_id)
    try:
        return rule, await permissions.require_admin(db, outside, actor, rule.server_id)
    except ServerNotFound:
        raise RuleNotFound from None


async def _existing(db: AsyncSession, rule_id: int) -> Rule:
    rule = await db.get(Rule, rule_id) if row_ids.fits(rule_id) else None
    if rule is None or rule.deleted_at is not None:
        raise RuleNotFound
    return rule


async def _locked(db: AsyncSession, rule_id: int) -> Rule:
    """Return the present row, locked until the transaction ends. Raises RuleNotFound if it was deleted meanwhile."""
    rule = await db.get(Rule, rule_id, populate_existing=True, with_for_update=True)
    if rule is None or rule.deleted_at is not None:
        raise RuleNotFound
    return rule


def line_of_change(rule: Rule, actor: str | None, batch: UUID, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the log's line about a rule that was changed, alone or together with the others of the batch."""
    return _line("rule.changed", rule, actor, batch, {"before": before, "after": document(rule)})


def _line(kind: Kind, rule: Rule, actor: str | None, batch: UUID, data: Mapping[str, Any]) -> dict[str, Any]:
    return audit.line(
        kind, server_id=rule.server_id, actor=actor, role_id=rule.role_id, rule_id=rule.id, batch=batch, data=data
    )
