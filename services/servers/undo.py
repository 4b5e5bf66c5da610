"""Undo events of the audit log: restore a rule, or give a role back to members who lost it.

A batch can be undone once, while its lines are kept (`log_days` in the settings).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from sqlmodel import col, select

from gateways import Gateways
from locales import _, listed, ngettext, sentences
from models import Event, Rule
from models.db.session import AsyncSession
from services.collections import collections
from services.core import audit, queue
from services.core.actors import Actor
from services.core.errors import BatchNotFound, Conflict, FieldRefused
from services.core.json_view import json_view
from services.guilds import permissions, rivals
from services.guilds.permissions import Rights
from services.guilds.role_safety import find, refusal
from services.roles import breaker
from services.roles.outbox import INTENT_CHANNEL
from services.rules import limits, pausing, rule_rows, rules
from services.rules.draft import RuleDraft
from services.rules.expression import lists_in, parse, requirements
from services.rules.replacements import contract_migrations, new_role
from services.rules.types import stored_address_lists
from services.rules.types.declaration import ExpressionRefused
from services.servers.activity import UNDONE
from services.servers.activity_sentences import changes

Undone = tuple[str, int]
"""A sentence about the result, and how many members get a role at once."""


async def give_back(db: AsyncSession, found: Rights, _actor: Actor, event: Event) -> Undone:
    """Give the role of a batch of removals back to all members who are still there.

    They get it as a gift: it stays until a rule says yes to them again. Pending removals are cancelled. Raises Conflict
    when the role cannot be granted (any more), or when nobody is left to get it back.
    """
    name = _grantable(found, event.role_id or "")
    who = {"server": event.server_id, "role": event.role_id, "batch": event.batch}
    await _hold_back_reconciles(db, who)
    turned = await db.execute(_TURN_ROUND, who)
    given = await db.execute(_GIVE, who)
    people = [str(one) for (one,) in [*turned.all(), *given.all()]]
    taken = int((await db.execute(_TAKEN, who)).scalar_one())
    await rivals.end(db, found.server.id or 0, event.role_id or "", people)
    if not people:
        nobody = _("Nobody is left to give {role} back to: they have it again, or they have left the server.")
        raise Conflict(nobody.format(role=name))
    back = ngettext(
        "{count} member gets {role} back and keeps it although no rule says yes, until one says yes again.",
        "{count} members get {role} back and keep it although no rule says yes, until one says yes again.",
        len(people),
    ).format(count=len(people), role=name)
    if (rest := taken - len(people)) <= 0:
        return back, len(people)
    others = ngettext(
        "{count} member of those who lost it has it again or is gone.",
        "{count} members of those who lost it have it again or are gone.",
        rest,
    ).format(count=rest)
    return sentences(back, others), len(people)


async def give_again(db: AsyncSession, found: Rights, _actor: Actor, event: Event) -> Undone:
    """Give a role of ours again to members from whom somebody else took it; its rules decide about it as before.

    Raises Conflict when the role cannot be granted (any more), or when nobody lacks it.
    """
    name = _grantable(found, event.role_id or "")
    who = {"server": event.server_id, "role": event.role_id, "batch": event.batch}
    await _hold_back_reconciles(db, who)
    people = [str(one) for (one,) in (await db.execute(_AGAIN, who)).all()]
    await rivals.end(db, found.server.id or 0, event.role_id or "", people)
    if not people:
        raise Conflict(_("Nobody is left who misses {role}.").format(role=name))
    again = ngettext(
        "{count} member gets {role} again. Rules decide about it as before.",
        "{count} members get {role} again. Rules decide about it as before.",
        len(people),
    )
    return again.format(count=len(people), role=name), len(people)


def _grantable(found: Rights, role_id: str) -> str:
    """Return the role's present name at Discord. Raises Conflict with the reason if it cannot be granted."""
    guild, person, bot = found.guild_with_bot()
    role = find(guild.roles, role_id)
    if role is None:
        raise Conflict(_("This role does not exist in the server any more."))
    if reason := refusal(role, guild.id, bot, person):
        raise Conflict(reason)
    return role.name


async def _hold_back_reconciles(db: AsyncSession, batch: Mapping[str, Any]) -> None:
    """Invalidate running reconciles of the members whom the batch concerns, and notify the writer."""
    people = [str(one) for (one,) in (await db.execute(_CONCERNED, batch)).all()]
    await queue.mark_members(db, batch["server"], people, queue.CHANGED)
    await db.execute("SELECT pg_notify(:channel, '')", {"channel": INTENT_CHANNEL})


_CONCERNED = """
    SELECT subject FROM event WHERE server_id = :server AND role_id = CAST(:role AS text)
    AND batch = CAST(:batch AS uuid) AND kind IN ('role.taken', 'role.lost')
    UNION SELECT discord_id FROM "grant"
    WHERE server_id = :server AND role_id = :role AND batch = :batch AND state = 'taking'
"""

# The role may (still) be there, so `attempts` starts at 1: the writer first reads the member. Grants are locked in the
# order of `queue.in_order_of_key`.
_TURN_ROUND = f"""
    UPDATE "grant" SET state = 'giving', attempts = 1, gift_since = now(), no_since = NULL, held_back_at = NULL,
        intended_at = now(), next_at = now(), updated_at = now()
    WHERE id IN (
        SELECT id FROM "grant" WHERE server_id = :server AND role_id = :role AND batch = :batch AND state = 'taking'
        AND {breaker.WAS_GIVEN} ORDER BY discord_id FOR UPDATE) RETURNING discord_id
"""
_LOSERS = """
    SELECT DISTINCT e.subject FROM event e WHERE e.server_id = :server AND e.role_id = CAST(:role AS text)
    AND e.batch = CAST(:batch AS uuid) AND e.kind = 'role.taken'
"""
_GIVE = f"""
    INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, gift_since, batch,
                         intended_at, next_at, attempts, created_at, updated_at)
    SELECT m.server_id, m.discord_id, CAST(:role AS text), CAST('{{}}' AS integer[]), 'giving', false,
           jsonb_build_object('undone', CAST(:batch AS text)), now(), CAST(:batch AS uuid),
           now(), now(), 1, now(), now()
    FROM member m WHERE m.server_id = :server AND m.left_at IS NULL AND m.discord_id IN ({_LOSERS})
    AND NOT (CAST(:role AS text) = ANY(m.roles))
    AND NOT EXISTS (SELECT 1 FROM farewell f WHERE f.discord_id = m.discord_id)
    ORDER BY m.discord_id
    ON CONFLICT (server_id, discord_id, role_id) DO NOTHING RETURNING discord_id
"""
_TAKEN = f"SELECT count(*) FROM ({_LOSERS}) l"
_AGAIN = """
    UPDATE "grant" SET state = 'giving', attempts = 1, intended_at = now(), next_at = now(), updated_at = now()
    WHERE id IN (
        SELECT g.id FROM "grant" g
        JOIN event e ON e.server_id = g.server_id AND e.role_id = g.role_id AND e.subject = g.discord_id
        JOIN member m ON m.server_id = g.server_id AND m.discord_id = g.discord_id AND m.left_at IS NULL
        WHERE e.server_id = :server AND e.role_id = CAST(:role AS text) AND e.batch = CAST(:batch AS uuid)
        AND e.kind = 'role.lost' AND g.state = 'lost' ORDER BY g.discord_id FOR UPDATE OF g) RETURNING discord_id
"""


# Field names in a rule's document, and in the payload of a change.
_FIELDS = {
    "name": "ruleName", "roleId": "roleId", "roleColor": "roleColor", "expression": "expression", "removal": "removal",
    "takesOver": "takesOver", "delegated": "delegated", "state": "state",
}  # fmt: skip


async def bring_back(db: AsyncSession, found: Rights, actor: Actor, event: Event) -> Undone:
    """Restore a deleted rule under its own id. Raises Conflict, FieldRefused."""
    document, rule_id = _document(event, "rule"), event.rule_id or 0
    await limits.lock(db, found.server.id or 0)
    rule = await db.get(Rule, rule_id, with_for_update=True)
    if rule is not None and rule.deleted_at is None:
        raise Conflict(_("This rule is there again already."))
    await limits.check(db, found.server.id or 0, parse(document["expression"]), rule_id=rule_id)
    if event.data.get("pauseCause") or (rule is not None and rule.pause_cause is not None):
        # It was not an admin who paused it. Once it can be brought back, the cause is gone.
        document = {**document, "state": "active"}
    if rule is None:
        rule = rule_rows.new_row(_draft(document, found.server.id or 0), found, actor.discord_id)
        rule.id = rule_id
    rule.deleted_at = None
    rule_rows.apply(rule, _payload(document), found)
    await _use_lists(db, rule)
    db.add(rule)
    await db.flush()
    # Without the rule, a no said nothing about what its members hold.
    await pausing.decide_again(db, rule.server_id, [rule.role_id], resumed=[rule_id])
    holders = event.data.get("holders") or 0
    words = [_("The rule “{rule}” comes back as it was.").format(rule=rule.name)]
    if isinstance(holders, int) and holders:
        had = ngettext("{count} member had {role} by it.", "{count} members had {role} by it.", holders)
        words.append(had.format(count=holders, role=rule.role_name))
    again = _("Everybody is checked again, and members who hold what it asks for get {role}.")
    return sentences(*words, again.format(role=rule.role_name)), 0


async def change_back(db: AsyncSession, found: Rights, _actor: Actor, event: Event) -> Undone:
    """Revert the fields that one change of a rule changed.

    Raises Conflict when the rule is gone or when one of these fields was changed again since, FieldRefused.
    """
    before, after = _document(event, "before"), _document(event, "after")
    await limits.lock(db, found.server.id or 0)
    rule = await _living(db, event.rule_id or 0)
    now = rule_rows.document(rule)
    changed = [name for name in _FIELDS if before.get(name) != after.get(name)]
    if not changed:
        raise Conflict(_("This change changed nothing that could be put back."))
    if any(now.get(name) != after.get(name) for name in changed) or await _changed_since(db, event, changed):
        raise Conflict(_("The rule was changed again since. Undo the newer change first, or edit the rule."))
    if "expression" in changed:
        await limits.check(db, rule.server_id, parse(before["expression"]), rule_id=rule.id or 0)
    rule_rows.apply(rule, _payload({name: before.get(name) for name in changed}), found)
    await _use_lists(db, rule)
    db.add(rule)
    await db.flush()
    await rules.mark_changed(db, rule, now)
    places = [(leaf.chain, leaf.contract) for one in (before, after) for leaf in requirements(parse(one["expression"]))]
    told = changes(now, rule_rows.document(rule), await collections.names(db, places))
    words = _("The rule “{rule}” is changed back: {changes}. Everybody is checked again.")
    return words.format(rule=rule.name, changes=told), 0


async def _changed_since(db: AsyncSession, event: Event, fields: Sequence[str]) -> bool:
    """Return whether one of these fields was changed again since, even if it has the same value by now.

    A pause that somebody else made later is not undone with an earlier one. Changes that were undone do not count, nor
    do pauses that have ended.
    """
    undone = select(Event.batch).where(Event.server_id == event.server_id, Event.kind == UNDONE)
    of_rule = Event.server_id == event.server_id, Event.rule_id == event.rule_id, col(Event.id) > event.id
    kinds = {"rule.changed", *({"rule.paused", "rule.resumed"} if "state" in fields else ())}
    counted = *of_rule, col(Event.kind).in_(kinds), col(Event.batch).not_in(undone)
    rows = await db.exec(select(Event).where(*counted).order_by(col(Event.id)))
    paused = False
    for later in rows.all():
        before, after = later.data.get("before", {}), later.data.get("after", {})
        if later.kind != "rule.changed":
            paused = later.kind == "rule.paused"
        elif any(before.get(name) != after.get(name) for name in fields):
            return True
    return paused


async def migrate_back(db: AsyncSession, found: Rights, _actor: Actor, event: Event) -> Undone:
    """Give the rules of a migration, or of its end, their former conditions again.

    Raises Conflict when all of them were changed since.
    """
    changed = await _changed_rules(db, event)
    back, left = await contract_migrations.put_back(db, found, cast("UUID", event.batch), changed)
    words = ngettext(
        "{count} rule asks for what it asked for before. Everybody is checked again.",
        "{count} rules ask for what they asked for before. Everybody is checked again.",
        len(back),
    ).format(count=len(back))
    return _with_rest(words, left), 0


async def give_old_role(db: AsyncSession, found: Rights, _actor: Actor, event: Event) -> Undone:
    """Let the rules of a replaced role give the old one again. Raises Conflict, FieldRefused."""
    back, left = await new_role.put_back(db, found, await _changed_rules(db, event))
    words = ngettext(
        "{count} rule gives {role} again. Members get it first, and lose the other one after that.",
        "{count} rules give {role} again. Members get it first, and lose the other one after that.",
        len(back),
    ).format(count=len(back), role=event.data.get("oldName"))
    return _with_rest(words, left), 0


async def _changed_rules(db: AsyncSession, event: Event) -> list[dict[str, Any]]:
    """Return the rules that the event's batch changed, each with its documents before and after."""
    rows = await db.exec(
        select(Event)
        .where(Event.server_id == event.server_id, Event.batch == event.batch, Event.kind == "rule.changed")
        .order_by(col(Event.id))
    )
    return [
        {"rule": one.rule_id, "before": _document(one, "before"), "after": _document(one, "after")}
        for one in rows.all()
    ]


def _with_rest(words: str, left: Sequence[str]) -> str:
    if not left:
        return words
    names = listed([_("“{name}”").format(name=name) for name in left])
    return words + " " + _("Changed since, or not yours to change: {rules}.").format(rules=names)


async def resume(db: AsyncSession, found: Rights, _actor: Actor, event: Event) -> Undone:
    """Resume the rules that were paused together, except those that were paused again since, perhaps by an admin.

    Raises Conflict when none of them is still paused by that, FieldRefused.
    """
    rows = await db.exec(
        select(Event.rule_id).where(
            Event.server_id == event.server_id, Event.batch == event.batch, Event.kind == event.kind
        )
    )
    again = select(Event.rule_id).where(
        Event.server_id == event.server_id, Event.kind == event.kind, Event.rule_id == Rule.id,
        col(Event.id) > event.id, Event.batch != event.batch,
    )  # fmt: skip
    paused = await db.exec(
        select(Rule)
        .where(col(Rule.id).in_(rows.all()), col(Rule.deleted_at).is_(None), Rule.state == "paused")
        # An admin's pause has no cause.
        .where(col(Rule.pause_cause).is_not(None), ~again.exists())
        .order_by(col(Rule.id))
        .with_for_update()
    )
    names: list[str] = []
    resumed = paused.all()
    for rule in resumed:
        rule_rows.apply(rule, {"state": "active"}, found)
        db.add(rule)
        names.append(_("“{name}”").format(name=rule.name))
    if not names:
        raise Conflict(_("These rules have been resumed, deleted or paused again since."))
    await db.flush()
    roles = {rule.role_id for rule in resumed}
    await pausing.decide_again(db, found.server.id or 0, roles, resumed=[rule.id or 0 for rule in resumed])
    words = ngettext(
        "{rules} goes on deciding. Everybody is checked again.",
        "{rules} go on deciding. Everybody is checked again.",
        len(names),
    )
    return words.format(rules=listed(names)), 0


async def _use_lists(db: AsyncSession, rule: Rule) -> None:
    """Mark the rule's address lists as used. Raises Conflict if one was deleted with the rule or with the change."""
    try:
        await stored_address_lists.use(db, rule.server_id, lists_in(parse(rule.expression)))
    except FieldRefused:
        raise Conflict(
            _("The addresses of its list were deleted meanwhile. Edit the rule, or make it again.")
        ) from None


async def _living(db: AsyncSession, rule_id: int) -> Rule:
    rule = await db.get(Rule, rule_id, with_for_update=True)
    if rule is None or rule.deleted_at is not None:
        raise Conflict(_("The rule was deleted since. Bring it back first."))
    return rule


def _document(event: Event, name: str) -> dict[str, Any]:
    """Return a rule's document in a line of the log. Raises Conflict if the line has none."""
    value = event.data.get(name)
    if not isinstance(value, dict) or "expression" not in value:
        raise Conflict(_("The log does not say how the rule was, so it cannot be put back."))
    return cast("dict[str, Any]", value)


def _payload(document: Mapping[str, Any]) -> dict[str, Any]:
    return {theirs: document[ours] for ours, theirs in _FIELDS.items() if document.get(ours) is not None}


def _draft(document: Mapping[str, Any], server_id: int) -> RuleDraft:
    """Return the document as a draft; the flat fields follow from the expression."""
    first = next(requirements(parse(document["expression"])))
    return RuleDraft(
        rule_name=str(document.get("name")), contract_address=first.contract, blockchain=first.chain,
        verification_type=first.type, role_id=str(document.get("roleId")), server_id=server_id,
        expression=document["expression"],
    )  # fmt: skip


@json_view
class UndoView:
    """The result of undoing a batch, or of a preview of that, in words, and how many members get a role at once."""

    batch: str
    text: str
    members: int


async def preview(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, batch: UUID) -> UndoView:
    """Return what undoing the batch would do, by doing it and rolling back.

    Raises ServerNotFound, BatchNotFound, Conflict when it cannot be undone (any more), ProviderUnavailable.
    """
    # Before the savepoint, which would hold the connection while Discord is asked.
    found = await permissions.require_admin(db, outside, actor, server_id)
    nothing = await db.begin_nested()
    try:
        return await _undo(db, found, actor, server_id, batch)
    finally:
        await nothing.rollback()


async def undo(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, batch: UUID) -> UndoView:
    """Undo the batch and record that in the log; a batch is undone once. Raises as `preview` does."""
    return await _undo(db, await permissions.require_admin(db, outside, actor, server_id), actor, server_id, batch)


# The first line says what happened. A batch of removals can have tens of thousands, each with its evidence.
# Its id is looked for among the batch's own lines: in the order of all ids, the planner would read the log up to it.
_SUMMARY = f"""
    SELECT min(id), bool_or(kind = '{UNDONE}'), array_agg(DISTINCT rule_id) FILTER (WHERE rule_id IS NOT NULL)
    FROM event WHERE server_id = :server AND batch = :batch
"""


async def _undo(db: AsyncSession, found: Rights, actor: Actor, server_id: int, batch: UUID) -> UndoView:
    await db.lock(batch)
    first, is_undone, rules = (await db.execute(_SUMMARY, {"server": server_id, "batch": batch})).one()
    if first is None:
        raise BatchNotFound
    if is_undone:
        raise Conflict(_("This was undone before."))
    event = await db.get_one(Event, first)
    if (verb := VERBS.get(event.kind)) is None:
        raise Conflict(_("This cannot be undone."))
    try:
        words, members = await verb(db, found, actor, event)
    except (FieldRefused, ExpressionRefused) as refused:  # the latter for conditions that a newer version wrote
        raise Conflict(str(refused)) from None
    await audit.record(db, _line(event, rules or [], actor, members))
    return UndoView(str(batch), words, members)


def _line(event: Event, rules: Sequence[int], actor: Actor, members: int) -> dict[str, object]:
    rule_id = rules[0] if len(rules) == 1 else event.rule_id
    return audit.line(
        UNDONE, server_id=event.server_id, actor=actor.discord_id, role_id=event.role_id, rule_id=rule_id,
        batch=event.batch,
        data={"of": event.kind, "members": members, "rules": len(rules), "ruleIds": rules, **_rule(event)},
    )  # fmt: skip


def _rule(event: Event) -> dict[str, object]:
    """Return the rule's document, so that the line names the rule even after it is deleted."""
    return {name: event.data[name] for name in ("rule", "before", "after") if name in event.data}


VERBS: Mapping[str, Callable[[AsyncSession, Rights, Actor, Event], Awaitable[Undone]]] = {
    "role.taken": give_back,
    "role.lost": give_again,
    "rule.deleted": bring_back,
    "rule.changed": change_back,
    "rule.migrated": migrate_back,
    "rule.migration_ended": migrate_back,
    "rule.role_replaced": give_old_role,
    "rule.paused": resume,
}
"""The function that undoes each kind declared as undoable in `services/core/event_kinds`."""
